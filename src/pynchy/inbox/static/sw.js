// Shows notifications and leads back to the inbox. Nothing is stored for use without the host:
// a question from a cache could be answered too late.

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(show(event.notification.data));
});

async function show(path) {
  const windows = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  const open = windows.find((window) => new URL(window.url).pathname === "/");
  if (open) {
    open.postMessage({ show: path });
    await open.focus();
  } else {
    await self.clients.openWindow(path);
  }
}
