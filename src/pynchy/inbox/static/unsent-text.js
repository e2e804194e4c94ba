// What somebody has begun to answer, kept in this browser until it is sent or forgotten.

import { collect } from "./card-element.js";

const PREFIX = "pynchy-unsent:";
const KEEP_MS = 30 * 86400 * 1000;

function read(key) {
  try {
    return JSON.parse(localStorage.getItem(PREFIX + key));
  } catch {
    return null;
  }
}

// Text alone: a choice that came back by itself could be sent without having been looked at.
export function save(card) {
  const parts = collect(card).map(({ text }) => ({ text }));
  if (!parts.length) return;
  const empty = parts.every((part) => !part.text);
  try {
    if (empty) localStorage.removeItem(PREFIX + card.dataset.key);
    else localStorage.setItem(PREFIX + card.dataset.key, JSON.stringify({ at: Date.now(), parts }));
  } catch {
    // Private windows may refuse; the text is still in its field.
  }
}

export function restore(card) {
  const kept = read(card.dataset.key);
  if (!kept) return;
  card.querySelectorAll(".question").forEach((question, index) => {
    const part = kept.parts?.[index];
    const field = question.querySelector("[data-text]");
    if (part && field) field.value = part.text;
  });
}

export function text(key) {
  const kept = read(key);
  return (kept?.parts ?? []).map((part) => part.text).filter(Boolean).join("\n\n");
}

export function forget(key) {
  localStorage.removeItem(PREFIX + key);
}

export function forgetAll() {
  for (const name of Object.keys(localStorage)) if (name.startsWith(PREFIX)) localStorage.removeItem(name);
}

export function tidy() {
  for (const name of Object.keys(localStorage)) {
    if (!name.startsWith(PREFIX)) continue;
    const kept = read(name.slice(PREFIX.length));
    if (!kept || Date.now() - kept.at > KEEP_MS) localStorage.removeItem(name);
  }
}
