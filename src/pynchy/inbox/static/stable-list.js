// A list whose cards stay where they are while others come and go.

import { ignoreInputBriefly } from "./input-guard.js";

export class StableList {
  constructor(list) {
    this.list = list;
    // What scrolling by whole pixels has left over.
    this.rest = 0;
  }

  cards() {
    return [...this.list.querySelectorAll(":scope > .card")];
  }

  current() {
    return document.activeElement?.closest?.(".card") ?? null;
  }

  // Change the list so that the card in use stays where it is on the screen. Every other card that
  // moves is deaf for a moment.
  still(change) {
    const anchor = this.anchor();
    const before = new Map(this.cards().map((card) => [card, card.getBoundingClientRect().top]));
    change();
    if (anchor?.isConnected) {
      const moved = anchor.getBoundingClientRect().top - before.get(anchor);
      if (moved) this.scrollBy(moved);
    }
    for (const [card, top] of before) {
      if (card.isConnected && Math.abs(card.getBoundingClientRect().top - top) >= 1) ignoreInputBriefly(card);
    }
  }

  anchor() {
    const inUse = this.current() ?? this.list.querySelector(":scope > .card:hover");
    if (inUse && inUse.parentNode === this.list) return inUse;
    // A finger is over nothing until it lands: there, nothing on the screen may move.
    if (scrollY < 60 && matchMedia("(hover: hover)").matches) return null;
    return this.cards().find((card) => card.getBoundingClientRect().bottom > 80) ?? null;
  }

  // Scrolling goes by whole pixels; what is left over counts next time, or it would add up.
  scrollBy(distance) {
    const pixels = Math.round(distance + this.rest);
    this.rest = distance + this.rest - pixels;
    if (!pixels) return;
    const room = document.documentElement.scrollHeight - innerHeight - scrollY;
    if (pixels > room) document.body.style.minHeight = `${Math.ceil(scrollY + pixels + innerHeight)}px`;
    scrollTo({ top: scrollY + pixels, behavior: "instant" });
  }
}
