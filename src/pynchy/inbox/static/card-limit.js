// Limits how many cards are on the page, so that hundreds do not make it slow: the most urgent ones,
// of which no group takes all places. The others are a button away, and a search finds them, too.

import { writtenText } from "./card-element.js";
import { isSnoozed, returnedFromSnoozeAt } from "./snooze.js";

export const LIMIT_STEP = 100;
// So many above the limit may be there before the last ones are removed.
const SLACK = 20;

// So many of a group come before the next ones of any other; `fair_order.py` has the same number.
const SHARE = 5;

// What to sort each of the open questions by, so that no group takes all of the first places: each
// has a few in every turn.
export function fairPlaces(open) {
  const listed = new Map();
  const places = new Map();
  for (const [key, order] of [...open].sort(([, a], [, b]) => (a < b ? -1 : 1))) {
    const group = key.slice(0, key.indexOf("/"));
    const count = listed.get(group) ?? 0;
    listed.set(group, count + 1);
    places.set(key, `${String(Math.floor(count / SHARE)).padStart(6, "0")}-${order}`);
  }
  return places;
}

// What came back from a snooze last is first of all.
function placeAfterSnooze(place, returnedAt) {
  return returnedAt ? `!${1e15 - Math.round(returnedAt)}` : place;
}

// What to sort a card by that is on the page.
export function sortKey(card) {
  return placeAfterSnooze(card.dataset.place, Number(card.dataset.top));
}

// Which of the open questions have a card: the first `limit` by their places, and all that are
// snoozed.
export function keysWithinLimit(places, limit) {
  const snoozed = [];
  const waiting = [];
  for (const [key, place] of places) {
    if (isSnoozed(key)) snoozed.push(key);
    else waiting.push([placeAfterSnooze(place, returnedFromSnoozeAt(key)), key]);
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
