// A list whose cards stay where they are on the screen while others come and go.

import { ignoreInputBriefly } from "./input-guard.js";

export class StableList {
  constructor(list) {
    this.list = list;
    // What scrolling by whole pixels has left over.
    this.scrollRemainder = 0;
  }

  cards() {
    return [...this.list.querySelectorAll(":scope > .card")];
  }

  focusedCard() {
    return document.activeElement?.closest?.(".card") ?? null;
  }

  // Change the list so that the card in use stays where it is on the screen. Every other card that
  // moves ignores input for a moment.
  withCardsInPlace(change) {
    const anchor = this.anchorCard();
    const topsBefore = new Map(this.cards().map((card) => [card, card.getBoundingClientRect().top]));
    change();
    if (anchor?.isConnected) {
      const moved = anchor.getBoundingClientRect().top - topsBefore.get(anchor);
      if (moved) this.scrollBy(moved);
    }
    for (const [card, top] of topsBefore) {
      if (card.isConnected && Math.abs(card.getBoundingClientRect().top - top) >= 1) ignoreInputBriefly(card);
    }
  }

  anchorCard() {
    const inUse = this.focusedCard() ?? this.list.querySelector(":scope > .card:hover");
    if (inUse && inUse.parentNode === this.list) return inUse;
    // A finger is over nothing until it lands: there, nothing on the screen may move.
    if (scrollY < 60 && matchMedia("(hover: hover)").matches) return null;
    return this.cards().find((card) => card.getBoundingClientRect().bottom > 80) ?? null;
  }

  // Scrolling goes by whole pixels; what is left over counts next time, or it would add up.
  scrollBy(distance) {
    const pixels = Math.round(distance + this.scrollRemainder);
    this.scrollRemainder = distance + this.scrollRemainder - pixels;
    if (!pixels) return;
    const room = document.documentElement.scrollHeight - innerHeight - scrollY;
    if (pixels > room) document.body.style.minHeight = `${Math.ceil(scrollY + pixels + innerHeight)}px`;
    scrollTo({ top: scrollY + pixels, behavior: "instant" });
  }
}
