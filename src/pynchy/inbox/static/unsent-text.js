// Keeps what somebody has begun to write in this browser, until it is sent or 30 days old.

import { fillText, readFields } from "./card-element.js";

const PREFIX = "pynchy-unsent:";
const KEEP_MS = 30 * 86400 * 1000;

function load(key) {
  try {
    return JSON.parse(localStorage.getItem(PREFIX + key));
  } catch {
    return null;
  }
}

// Text alone: a choice that came back by itself could be sent without having been looked at.
export function saveUnsentText(card) {
  const parts = readFields(card).map(({ text }) => ({ text }));
  if (!parts.length) return;
  const empty = parts.every((part) => !part.text);
  try {
    if (empty) localStorage.removeItem(PREFIX + card.dataset.key);
    else localStorage.setItem(PREFIX + card.dataset.key, JSON.stringify({ at: Date.now(), parts }));
  } catch {
    // Private windows may refuse; the text is still in its field.
  }
}

export function restoreUnsentText(card) {
  const stored = load(card.dataset.key);
  if (!stored) return;
  card.querySelectorAll(".question").forEach((question, index) => {
    const part = stored.parts?.[index];
    const field = question.querySelector("[data-text]");
    if (part && field) fillText(field, part.text);
  });
}

export function unsentTextOf(key) {
  const stored = load(key);
  return (stored?.parts ?? []).map((part) => part.text).filter(Boolean).join("\n\n");
}

export function forgetUnsentText(key) {
  localStorage.removeItem(PREFIX + key);
}

export function forgetAllUnsentText() {
  for (const name of Object.keys(localStorage)) if (name.startsWith(PREFIX)) localStorage.removeItem(name);
}

export function forgetOldUnsentText() {
  for (const name of Object.keys(localStorage)) {
    if (!name.startsWith(PREFIX)) continue;
    const stored = load(name.slice(PREFIX.length));
    if (!stored || Date.now() - stored.at > KEEP_MS) localStorage.removeItem(name);
  }
}
