// Searching what waits, also among what has no card on this page.

import { ask } from "./key.js";

const PAUSE_MS = 150;

export class Finder {
  // `get` is called with the keys that fit, once the host has said which do, and `show` when those
  // are there.
  constructor(get, show) {
    this.get = get;
    this.show = show;
    this.found = new Set();
    this.busy = false;
  }

  // What is searched for has changed.
  look(text, needed) {
    clearTimeout(this.timer);
    this.found = new Set();
    this.busy = Boolean(text && needed);
    if (this.busy) this.timer = setTimeout(() => this.ask(text), PAUSE_MS);
    this.text = text;
  }

  async ask(text) {
    const reply = await ask(`/inbox/find?${new URLSearchParams({ q: text })}`).catch(() => null);
    const keys = reply?.ok ? await reply.json() : [];
    if (text !== this.text) return;
    this.found = new Set(keys);
    await this.get(keys);
    if (text !== this.text) return;
    this.busy = false;
    this.show();
  }
}
