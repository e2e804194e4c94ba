// A card whose question is over: how it says so, what it keeps of what was written in it, and how it
// leaves.

import { cardFromHtml, writtenText } from "./card-element.js";
import { updateTimes } from "./clock.js";
import { announce, isTextField } from "./every-page.js";
import { ignoreInputBriefly, ignoreTypingUntilPause } from "./input-guard.js";
import { forgetUnsentText, unsentTextOf } from "./unsent-text.js";

const LINGER_MS = 8000;

export class EndedCards {
  constructor(cards) {
    this.cards = cards;
  }

  show(card, message) {
    const made = cardFromHtml(message.html);
    const focused = card.contains(document.activeElement);
    const first = !card.classList.contains("over");
    if (first && focused && isTextField(document.activeElement)) ignoreTypingUntilPause();
    if (!card.sent) ignoreInputBriefly(card);
    clearTimeout(card.timer);
    delete card.dataset.mode;
    // From its own fields first: what is kept may be another tab's, or refused by the browser.
    if (first) card.draft = writtenText(card) || unsentTextOf(message.key);
    // It keeps its room: what is below must not slip under a finger.
    if (first) card.style.minHeight = `${card.offsetHeight}px`;
    card.className = made.className;
    card.replaceChildren(...made.childNodes);
    updateTimes(card);
    if (focused) card.focus({ preventScroll: true });
    if (card.note) card.querySelector(".result").prepend(card.note);
    if (!card.sent) this.keepUnsent(card);
    if (first) announce(card.querySelector(".outcome").textContent.trim());
    if (!this.cards.only) this.leaveLater(card);
  }

  // Somebody else was first: what was typed here is there to copy.
  keepUnsent(card) {
    if (!card.draft || card.querySelector(".unsent")) return;
    const box = document.createElement("div");
    box.className = "unsent";
    box.innerHTML = '<label><span>You had begun to write</span><textarea readonly rows="2"></textarea></label><div class="actions"><button type="button" data-do="copy">Copy</button><button type="button" class="quiet" data-do="discard">Discard</button></div><div class="actions"><span>Discarded.</span><button type="button" data-do="keep">Bring it back</button></div>';
    box.querySelector("textarea").value = card.draft;
    card.append(box);
    this.discard(card, Boolean(card.discarded));
  }

  // Until the card goes, what was discarded can be brought back.
  discard(card, discarded) {
    card.discarded = discarded;
    const [label, actions, back] = card.querySelector(".unsent").children;
    label.hidden = actions.hidden = discarded;
    back.hidden = !discarded;
    if (discarded) forgetUnsentText(card.dataset.key);
  }

  leaveLater(card) {
    clearTimeout(card.timer);
    card.timer = setTimeout(() => {
      const busy = card.contains(document.activeElement) || card.matches(":hover") || (card.draft && !card.sent && !card.discarded);
      if (busy || this.pushes(card)) this.leaveLater(card);
      else this.cards.drop(card);
    }, LINGER_MS);
  }

  // True if the card in use would move when this one is gone: the page cannot scroll above its top.
  pushes(card) {
    const anchor = this.cards.anchor();
    const above = anchor && card.compareDocumentPosition(anchor) & Node.DOCUMENT_POSITION_FOLLOWING;
    return Boolean(above) && scrollY < card.offsetHeight + 20;
  }
}
