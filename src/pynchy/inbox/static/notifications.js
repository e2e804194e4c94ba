// Shows browser notifications of new questions, where they are allowed and somebody asked for them.

import { cardFromHtml } from "./card-element.js";
import { fetchFromHost } from "./host-requests.js";

const SETTING = "pynchy-notify";
const MAX_PER_REQUEST = 50;

function areSupported() {
  return isSecureContext && "Notification" in window && "serviceWorker" in navigator;
}

export function startNotifications() {
  const button = document.querySelector("[data-do=notify]");
  const text = document.querySelector("[data-notify-text]");
  const showState = () => {
    button.hidden = !areSupported() || Notification.permission === "denied";
    const on = areSupported() && Notification.permission === "granted" && localStorage.getItem(SETTING) === "on";
    button.textContent = on ? "Stop notifying me" : "Notify me of new questions";
    if (!areSupported()) text.textContent = "This browser cannot notify here.";
    else if (Notification.permission === "denied") text.textContent = "Notifications are blocked in the browser’s settings.";
    else text.textContent = on ? "On, while this page is open." : "";
  };
  button.addEventListener("click", async () => {
    const on = Notification.permission === "granted" && localStorage.getItem(SETTING) === "on";
    if (!on) await Notification.requestPermission();
    localStorage.setItem(SETTING, on ? "off" : "on");
    showState();
  });
  if (areSupported()) navigator.serviceWorker.register("/sw.js").catch(() => {});
  showState();
}

function areEnabled() {
  return areSupported() && Notification.permission === "granted" && localStorage.getItem(SETTING) === "on";
}

export async function notifyOfCard(card) {
  if (!areEnabled() || (document.hasFocus() && !document.hidden)) return;
  const registration = await navigator.serviceWorker.getRegistration("/");
  await registration?.showNotification(`${card.dataset.who} asks`, {
    body: card.dataset.brief,
    tag: card.dataset.key,
    icon: "/static/icon-192.png",
    data: `/q/${card.dataset.key}`,
    requireInteraction: card.dataset.urgency === "high",
  });
}

// Of questions that have no card on this page.
export async function notifyOfQuestions(keys) {
  if (!areEnabled() || !keys.length) return;
  const query = new URLSearchParams(keys.slice(0, MAX_PER_REQUEST).map((key) => ["key", key]));
  const reply = await fetchFromHost(`/inbox/cards?${query}`).catch(() => null);
  if (!reply?.ok) return;
  for (const { html, over } of await reply.json()) if (!over) await notifyOfCard(cardFromHtml(html));
}

export async function closeNotification(key) {
  if (!areEnabled()) return;
  const registration = await navigator.serviceWorker.getRegistration("/");
  for (const notification of (await registration?.getNotifications({ tag: key })) ?? []) notification.close();
}
