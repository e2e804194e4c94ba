// The service worker: opens the inbox when a notification is clicked. It caches nothing: a question
// from a cache could be answered too late.

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(openQuestion(event.notification.data));
});

async function openQuestion(path) {
  const windows = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  const inbox = windows.find((window) => new URL(window.url).pathname === "/");
  if (inbox) {
    inbox.postMessage({ show: path });
    await inbox.focus();
  } else {
    await self.clients.openWindow(path);
  }
}
