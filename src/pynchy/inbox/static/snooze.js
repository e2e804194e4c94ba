// Hiding a question for a while, in this browser alone. It comes back on top, and before its end.

import { facts, now } from "./page-data.js";

const PREFIX = "pynchy-snooze:";
// What is hidden comes back this long before it ends by itself, so that there is time to answer.
const BEFORE_END_MS = 5 * 60 * 1000;

export function choices(card) {
  const latest = Date.parse(card.dataset.due) - BEFORE_END_MS;
  return facts.snoozes.map((snooze) => ({
    text: snooze.text,
    until: Math.min(moment(snooze), latest),
    cut: moment(snooze) > latest,
  })).filter((choice) => choice.until > now());
}

function moment(snooze) {
  if (snooze.seconds !== null) return now() + snooze.seconds * 1000;
  const day = new Date(now());
  day.setDate(day.getDate() + 1);
  day.setHours(snooze.hour, 0, 0, 0);
  return day.getTime();
}

export function snooze(key, until) {
  localStorage.setItem(PREFIX + key, JSON.stringify({ until }));
}

export function wake(key) {
  if (isSnoozed(key)) snooze(key, now());
}

export function forget(key) {
  localStorage.removeItem(PREFIX + key);
}

// When the question came back from a snooze, also one that ended while no page was open.
export function cameBack(key) {
  return isSnoozed(key) ? null : snoozedUntil(key);
}

export function isSnoozed(key) {
  const until = snoozedUntil(key);
  return until !== null && until > now();
}

export function snoozedUntil(key) {
  try {
    return JSON.parse(localStorage.getItem(PREFIX + key))?.until ?? null;
  } catch {
    return null;
  }
}

export function tidy(open) {
  for (const name of Object.keys(localStorage)) {
    if (name.startsWith(PREFIX) && !open.has(name.slice(PREFIX.length))) localStorage.removeItem(name);
  }
}
