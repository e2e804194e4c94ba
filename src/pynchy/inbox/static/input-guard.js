// No accidental answers: a card that has just appeared or moved, or a window that has just come
// back, takes no key and no click for a moment. Nor do letters that were meant for a field that is
// gone become commands.

import { isTextField } from "./every-page.js";

const DEAF_MS = 400;
// So long without a key, and whoever typed has looked up.
const LULL_MS = 1000;
const since = new WeakMap();
let back = performance.now();
let lastLetter = null;

export function ignoreInputBriefly(card) {
  since.set(card, performance.now());
}

export function isIgnoringInput(card) {
  return performance.now() - Math.max(since.get(card) ?? 0, back) < DEAF_MS;
}

// Somebody types into a field that goes: until a pause, what is typed is for that field alone.
export function ignoreTypingUntilPause() {
  lastLetter = performance.now();
}

function isTypedOn(event) {
  if (lastLetter === null) return false;
  const over = performance.now() - lastLetter >= LULL_MS || event.key === "Escape" || isTextField(event.target);
  lastLetter = over ? null : performance.now();
  const isShortcut = (event.ctrlKey || event.metaKey || event.altKey) && event.key !== "Enter";
  return !over && !isShortcut;
}

function stop(event) {
  event.preventDefault();
  event.stopImmediatePropagation();
}

function refuse(event) {
  if (event.type === "keydown" && isTypedOn(event)) return stop(event);
  const card = event.target.closest?.(".card");
  if (!card || !isIgnoringInput(card)) return;
  // Typing answers nothing, so no letter is lost.
  const types = event.type === "keydown" && event.target.matches("textarea, input:not([type=checkbox], [type=radio])");
  if (types && !(event.key === "Enter" && (event.ctrlKey || event.metaKey || event.target.matches("input")))) return;
  stop(event);
}

export function startInputGuard() {
  for (const kind of ["click", "keydown", "submit"]) addEventListener(kind, refuse, true);
  addEventListener("focus", () => {
    back = performance.now();
  });
  document.addEventListener("visibilitychange", () => {
    back = performance.now();
  });
}
