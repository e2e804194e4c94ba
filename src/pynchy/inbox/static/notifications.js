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

// What a group has on the screen, as far as this page knows: no group fills it alone, and none that
// asks and withdraws without end makes it flicker. A desktop's popups have the same limit.
const MAX_OF_GROUP = 5;
const MAX_RECENT = 10;
const RECENT_MS = 20_000;
const groups = new Map();

function groupOf(key) {
  return key.slice(0, key.indexOf("/"));
}

// Take a place for a notification of the question; false if its group has none left.
function takePlace(key) {
  const group = groupOf(key);
  if (!groups.has(group)) groups.set(group, { keys: new Set(), times: [] });
  const held = groups.get(group);
  held.times = held.times.filter((time) => performance.now() - time < RECENT_MS);
  if (held.keys.has(key)) return true;
  if (held.keys.size >= MAX_OF_GROUP || held.times.length >= MAX_RECENT) return false;
  held.keys.add(key);
  held.times.push(performance.now());
  return true;
}

export async function notifyOfCard(card) {
  if (!areEnabled() || (document.hasFocus() && !document.hidden)) return;
  const { key, who, brief, urgency } = card.dataset;
  // Before anything is waited for: others may come meanwhile.
  const hasPlace = takePlace(key);
  const registration = await navigator.serviceWorker.getRegistration("/");
  if (!hasPlace) return registration && tellOfMore(registration, groupOf(key));
  await registration?.showNotification(`${who} asks`, {
    body: brief,
    tag: key,
    icon: "/static/icon-192.png",
    data: `/q/${key}`,
    requireInteraction: urgency === "high",
  });
}

// One for all that have no place, and only once.
async function tellOfMore(registration, group) {
  const held = groups.get(group);
  if (held.toldOfMore) return;
  held.toldOfMore = true;
  await registration.showNotification(group, {
    body: "More questions wait in the inbox",
    tag: group,
    icon: "/static/icon-192.png",
    data: "/",
    silent: true,
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
  const held = groups.get(groupOf(key));
  held?.keys.delete(key);
  const tags = [key];
  if (held?.toldOfMore && !held.keys.size) {
    held.toldOfMore = false;
    tags.push(groupOf(key));
  }
  if (!areEnabled()) return;
  const registration = await navigator.serviceWorker.getRegistration("/");
  for (const tag of tags) {
    for (const notification of (await registration?.getNotifications({ tag })) ?? []) notification.close();
  }
}
