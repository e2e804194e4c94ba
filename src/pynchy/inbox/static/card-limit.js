// How many cards are on the page: the most urgent ones, so that hundreds do not make it slow. The
// others are a button away, and a search finds them, too.

import { writtenText } from "./card-element.js";
import { isSnoozed, returnedFromSnoozeAt } from "./snooze.js";

export const LIMIT_STEP = 100;
// So many more than wanted may be there before the last ones are taken away.
const SLACK = 20;

export function rankOf(key, order) {
  // What came back from a snooze last is first of all.
  const back = returnedFromSnoozeAt(key);
  return back === null ? order : `!${1e15 - Math.round(back)}`;
}

// Which of the open questions have a card: the first `most` in order, and all that are hidden.
export function keysWithinLimit(open, most) {
  const asleep = [];
  const awake = [];
  for (const [key, order] of open) {
    if (isSnoozed(key)) asleep.push(key);
    else awake.push([rankOf(key, order), key]);
  }
  awake.sort(([a], [b]) => (a < b ? -1 : 1));
  return new Set([...awake.slice(0, most).map(([, key]) => key), ...asleep]);
}

// The cards that can go: not wanted, below what is seen, and with nothing begun in them.
export function surplusCards(cards, keys, most) {
  if (cards.length <= most + SLACK) return [];
  return cards.filter((card) => !keys.has(card.dataset.key) && isIdle(card));
}

function isIdle(card) {
  const touched = card.dataset.mode || card.draft || card.contains(document.activeElement) || card.matches(":hover");
  const begun = writtenText(card) || card.querySelector(":checked, [aria-pressed=true]");
  return !touched && !begun && card.getBoundingClientRect().top > innerHeight;
}
