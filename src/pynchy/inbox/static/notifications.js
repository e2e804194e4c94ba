// Notifications of the browser, where they are allowed and somebody asked for them.

import { make } from "./card-element.js";
import { ask } from "./host-requests.js";

const WANTED = "pynchy-notify";
const AT_ONCE = 50;

function possible() {
  return isSecureContext && "Notification" in window && "serviceWorker" in navigator;
}

export function offerNotifications() {
  const button = document.querySelector("[data-do=notify]");
  const text = document.querySelector("[data-notify-text]");
  const show = () => {
    button.hidden = !possible() || Notification.permission === "denied";
    const on = possible() && Notification.permission === "granted" && localStorage.getItem(WANTED) === "on";
    button.textContent = on ? "Stop notifying me" : "Notify me of new questions";
    if (!possible()) text.textContent = "This browser cannot notify here.";
    else if (Notification.permission === "denied") text.textContent = "Notifications are blocked in the browser’s settings.";
    else text.textContent = on ? "On, while this page is open." : "";
  };
  button.addEventListener("click", async () => {
    const on = Notification.permission === "granted" && localStorage.getItem(WANTED) === "on";
    if (!on) await Notification.requestPermission();
    localStorage.setItem(WANTED, on ? "off" : "on");
    show();
  });
  if (possible()) navigator.serviceWorker.register("/sw.js").catch(() => {});
  show();
}

function wanted() {
  return possible() && Notification.permission === "granted" && localStorage.getItem(WANTED) === "on";
}

export async function notify(card) {
  if (!wanted() || (document.hasFocus() && !document.hidden)) return;
  const registration = await navigator.serviceWorker.getRegistration("/");
  await registration?.showNotification(`${card.dataset.agent} asks`, {
    body: card.dataset.brief,
    tag: card.dataset.key,
    icon: "/static/icon-192.png",
    data: `/q/${card.dataset.key}`,
    requireInteraction: card.dataset.urgency === "high",
  });
}

// Of questions that are on no card of this page.
export async function notifyOf(keys) {
  if (!wanted() || !keys.length) return;
  const query = new URLSearchParams(keys.slice(0, AT_ONCE).map((key) => ["key", key]));
  const reply = await ask(`/inbox/cards?${query}`).catch(() => null);
  if (!reply?.ok) return;
  for (const { html, over } of await reply.json()) if (!over) await notify(make(html));
}

export async function unnotify(key) {
  if (!wanted()) return;
  const registration = await navigator.serviceWorker.getRegistration("/");
  for (const shown of (await registration?.getNotifications({ tag: key })) ?? []) shown.close();
}
