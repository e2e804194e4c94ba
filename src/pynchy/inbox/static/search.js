// Searching what waits, also among what has no card on this page.

import { fetchFromHost } from "./host-requests.js";

const PAUSE_MS = 150;
const NONE = "Nothing that waits fits the search.";
const MORE = "More than a hundred fit: these are the most urgent of them.";
const TROUBLE = "The host does not answer: only what is on this page was searched.";

export class CardSearch {
  // `get` is called with the keys that fit, once the host has said which do, and `show` when those
  // are there.
  constructor(get, show) {
    this.get = get;
    this.show = show;
    this.place = document.querySelector("[data-found]");
    this.found = new Set();
    this.busy = false;
    this.note = "";
  }

  // What is searched for has changed.
  look(text, needed) {
    clearTimeout(this.timer);
    this.found = new Set();
    this.note = "";
    this.busy = Boolean(text && needed);
    if (this.busy) this.timer = setTimeout(() => this.ask(text), PAUSE_MS);
    this.text = text;
  }

  async ask(text) {
    const reply = await fetchFromHost(`/inbox/find?${new URLSearchParams({ q: text })}`).catch(() => null);
    const { keys, more } = reply?.ok ? await reply.json() : { keys: [], more: false };
    if (text !== this.text) return;
    if (!reply?.ok) this.note = TROUBLE;
    else if (more) this.note = MORE;
    this.found = new Set(keys);
    await this.get(keys);
    if (text !== this.text) return;
    this.busy = false;
    this.show();
  }

  // Say what the cards alone do not.
  tell(cards) {
    if (!this.place) return;
    const none = cards.length > 0 && !this.busy && cards.every((card) => card.hidden);
    this.place.textContent = this.note || (none ? NONE : "");
    this.place.hidden = !this.place.textContent;
  }
}
