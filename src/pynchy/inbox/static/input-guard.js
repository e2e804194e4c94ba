// Prevents accidental answers: a card that has just appeared or moved, a button that has just taken
// another's place, or a window that has just come back, ignores keys and clicks for a moment. Nor do letters that were meant for a field that is gone
// become commands.

import { isTextField } from "./every-page.js";

const IGNORE_MS = 400;
// After so long without a key, whoever typed has seen that the field is gone.
const PAUSE_MS = 1000;
const ignoredSince = new WeakMap();
let windowBackAt = performance.now();
let lastKeyAt = null;

// Of a card, or of a single button in it.
export function ignoreInputBriefly(element) {
  ignoredSince.set(element, performance.now());
}

export function isIgnoringInput(element) {
  return performance.now() - Math.max(ignoredSince.get(element) ?? 0, windowBackAt) < IGNORE_MS;
}

// True if a button that ignores input would be pressed; a key that is held presses none at all. Other
// keys than these are not meant for it.
function pressesIgnoringButton(event) {
  const button = event.target.closest?.("button");
  const presses = event.type === "click" || event.key === "Enter" || event.key === " ";
  return presses && ignoredSince.has(button) && (isIgnoringInput(button) || event.repeat);
}

// Somebody types into a field that goes: until a pause, what is typed was meant for that field.
export function ignoreTypingUntilPause() {
  lastKeyAt = performance.now();
}

function isLeftoverTyping(event) {
  if (lastKeyAt === null) return false;
  const isOver = performance.now() - lastKeyAt >= PAUSE_MS || event.key === "Escape" || isTextField(event.target);
  lastKeyAt = isOver ? null : performance.now();
  const isShortcut = (event.ctrlKey || event.metaKey || event.altKey) && event.key !== "Enter";
  return !isOver && !isShortcut;
}

function swallow(event) {
  event.preventDefault();
  event.stopImmediatePropagation();
}

function guardInput(event) {
  if (event.type === "keydown" && isLeftoverTyping(event)) return swallow(event);
  if (pressesIgnoringButton(event)) return swallow(event);
  const card = event.target.closest?.(".card");
  if (!card || !isIgnoringInput(card)) return;
  // Typing answers nothing, so no letter is lost.
  const isWriting = event.type === "keydown" && event.target.matches("textarea, input:not([type=checkbox], [type=radio])");
  if (isWriting && !(event.key === "Enter" && (event.ctrlKey || event.metaKey || event.target.matches("input")))) return;
  swallow(event);
}

export function startInputGuard() {
  for (const kind of ["click", "keydown", "submit"]) addEventListener(kind, guardInput, true);
  addEventListener("focus", () => {
    windowBackAt = performance.now();
  });
  document.addEventListener("visibilitychange", () => {
    windowBackAt = performance.now();
  });
}
