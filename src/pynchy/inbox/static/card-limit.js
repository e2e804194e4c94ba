// Limits how many cards are on the page, so that hundreds do not make it slow: the most urgent ones.
// The others are a button away, and a search finds them, too.

import { writtenText } from "./card-element.js";
import { isSnoozed, returnedFromSnoozeAt } from "./snooze.js";

export const LIMIT_STEP = 100;
// So many above the limit may be there before the last ones are removed.
const SLACK = 20;

function sortKeyOf(key, order) {
  // What came back from a snooze last is first of all.
  const returnedAt = returnedFromSnoozeAt(key);
  return returnedAt === null ? order : `!${1e15 - Math.round(returnedAt)}`;
}

// Which of the open questions have a card: the first `limit` in order, and all that are snoozed.
export function keysWithinLimit(open, limit) {
  const snoozed = [];
  const waiting = [];
  for (const [key, order] of open) {
    if (isSnoozed(key)) snoozed.push(key);
    else waiting.push([sortKeyOf(key, order), key]);
  }
  waiting.sort(([a], [b]) => (a < b ? -1 : 1));
  return new Set([...waiting.slice(0, limit).map(([, key]) => key), ...snoozed]);
}

// The cards that can go: not wanted, below what is seen, and with nothing begun in them.
export function surplusCards(cards, keys, limit) {
  if (cards.length <= limit + SLACK) return [];
  return cards.filter((card) => !keys.has(card.dataset.key) && isUntouched(card));
}

function isUntouched(card) {
  const touched = card.dataset.mode || card.unsentText || card.contains(document.activeElement) || card.matches(":hover");
  const begun = writtenText(card) || card.querySelector(":checked, [aria-pressed=true]");
  return !touched && !begun && card.getBoundingClientRect().top > innerHeight;
}
