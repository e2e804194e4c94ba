// Hides questions for a while, in this browser alone. They come back on top, and before their end.

import { formatDuration } from "./clock.js";
import { hostNow, pageData } from "./page-data.js";

const PREFIX = "pynchy-snooze:";
// What is hidden comes back this long before it ends by itself, so that there is time to answer.
const BEFORE_END_MS = 5 * 60 * 1000;

export function snoozeChoices(card) {
  const latest = Date.parse(card.dataset.due) - BEFORE_END_MS;
  return pageData.snoozes.map((preset) => ({
    text: preset.text,
    until: Math.min(endOf(preset), latest),
    cutShort: endOf(preset) > latest,
  })).filter((choice) => choice.until > hostNow());
}

// A button for each choice, up to the first that the question's end cuts short.
export function fillSnoozePanel(panel, choices) {
  const buttons = panel.querySelector(".actions");
  for (const choice of choices) {
    const button = document.createElement("button");
    button.type = "button";
    button.dataset.do = "snooze-now";
    button.dataset.until = String(choice.until);
    button.textContent = choice.cutShort ? `${formatDuration((choice.until - hostNow()) / 1000)} (it ends soon)` : choice.text;
    buttons.append(button);
    if (choice.cutShort) break;
  }
  if (!choices.length) panel.querySelector("p").textContent = "It ends too soon to be hidden.";
  buttons.insertAdjacentHTML("beforeend", '<button type="button" class="quiet" data-do="close">Cancel <kbd aria-hidden="true">Esc</kbd></button>');
}

function endOf(preset) {
  if (preset.seconds !== null) return hostNow() + preset.seconds * 1000;
  const day = new Date(hostNow());
  day.setDate(day.getDate() + 1);
  day.setHours(preset.hour, 0, 0, 0);
  return day.getTime();
}

export function startSnooze(key, until) {
  localStorage.setItem(PREFIX + key, JSON.stringify({ until }));
}

export function endSnooze(key) {
  if (isSnoozed(key)) startSnooze(key, hostNow());
}

export function forgetSnooze(key) {
  localStorage.removeItem(PREFIX + key);
}

// When the question came back from a snooze, also one that ended while no page was open.
export function returnedFromSnoozeAt(key) {
  return isSnoozed(key) ? null : snoozedUntil(key);
}

export function isSnoozed(key) {
  const until = snoozedUntil(key);
  return until !== null && until > hostNow();
}

export function snoozedUntil(key) {
  try {
    return JSON.parse(localStorage.getItem(PREFIX + key))?.until ?? null;
  } catch {
    return null;
  }
}

export function forgetSnoozesExcept(openQuestions) {
  for (const name of Object.keys(localStorage)) {
    if (name.startsWith(PREFIX) && !openQuestions.has(name.slice(PREFIX.length))) localStorage.removeItem(name);
  }
}
