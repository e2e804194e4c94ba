// Searches what waits, also among questions that have no card on this page.

import { fetchFromHost } from "./host-requests.js";

const TYPING_PAUSE_MS = 150;
const NONE_FOUND = "Nothing that waits fits the search.";
const MORE_FOUND = "More than a hundred fit: these are the most urgent of them.";
const HOST_SILENT = "The host does not answer: only what is on this page was searched.";

export class CardSearch {
  // `loadCards` is called with the keys that the host has found, and `onResults` when their cards are
  // there.
  constructor(loadCards, onResults) {
    this.loadCards = loadCards;
    this.onResults = onResults;
    this.noteElement = document.querySelector("[data-found]");
    this.foundKeys = new Set();
    this.isSearching = false;
    this.note = "";
  }

  setText(text, needsHost) {
    clearTimeout(this.timer);
    this.foundKeys = new Set();
    this.note = "";
    this.isSearching = Boolean(text && needsHost);
    if (this.isSearching) this.timer = setTimeout(() => this.searchHost(text), TYPING_PAUSE_MS);
    this.text = text;
  }

  async searchHost(text) {
    const reply = await fetchFromHost(`/inbox/find?${new URLSearchParams({ q: text })}`).catch(() => null);
    const { keys, more } = reply?.ok ? await reply.json() : { keys: [], more: false };
    if (text !== this.text) return;
    if (!reply?.ok) this.note = HOST_SILENT;
    else if (more) this.note = MORE_FOUND;
    this.foundKeys = new Set(keys);
    await this.loadCards(keys);
    if (text !== this.text) return;
    this.isSearching = false;
    this.onResults();
  }

  // Say what the cards alone do not.
  showNote(cards) {
    if (!this.noteElement) return;
    const noneFound = cards.length > 0 && !this.isSearching && cards.every((card) => card.hidden);
    this.noteElement.textContent = this.note || (noneFound ? NONE_FOUND : "");
    this.noteElement.hidden = !this.noteElement.textContent;
  }
}
