// Cards whose question is over: they show how it ended, offer the unsent text to copy, and are removed
// after a while.

import { cardFromHtml, writtenText } from "./card-element.js";
import { updateTimes } from "./clock.js";
import { announce, isTextField } from "./every-page.js";
import { ignoreInputBriefly, ignoreTypingUntilPause } from "./input-guard.js";
import { forgetUnsentText, unsentTextOf } from "./unsent-text.js";

const LINGER_MS = 8000;

export class EndedCards {
  constructor(cardList) {
    this.cardList = cardList;
  }

  show(card, message) {
    const newCard = cardFromHtml(message.html);
    const focused = card.contains(document.activeElement);
    const justEnded = !card.classList.contains("over");
    if (justEnded && focused && isTextField(document.activeElement)) ignoreTypingUntilPause();
    if (!card.sent) ignoreInputBriefly(card);
    clearTimeout(card.timer);
    delete card.dataset.mode;
    // From its own fields first: what is kept may be another tab's, or refused by the browser.
    if (justEnded) card.unsentText = writtenText(card) || unsentTextOf(message.key);
    // It keeps its room: what is below must not slip under a finger.
    if (justEnded) card.style.minHeight = `${card.offsetHeight}px`;
    card.className = newCard.className;
    card.replaceChildren(...newCard.childNodes);
    updateTimes(card);
    if (focused) card.focus({ preventScroll: true });
    if (card.lateNotice) card.querySelector(".result").prepend(card.lateNotice);
    if (!card.sent) this.offerUnsentText(card);
    if (justEnded) announce(card.querySelector(".outcome").textContent.trim());
    if (!this.cardList.onlyKey) this.scheduleRemoval(card);
  }

  // Somebody else was first: what was typed here is there to copy.
  offerUnsentText(card) {
    if (!card.unsentText || card.querySelector(".unsent")) return;
    const box = document.createElement("div");
    box.className = "unsent";
    box.innerHTML = '<label><span>You had begun to write</span><textarea readonly rows="2"></textarea></label><div class="actions"><button type="button" data-do="copy">Copy</button><button type="button" class="quiet" data-do="discard">Discard</button></div><div class="actions"><span>Discarded.</span><button type="button" data-do="keep">Bring it back</button></div>';
    box.querySelector("textarea").value = card.unsentText;
    card.append(box);
    this.setDiscarded(card, Boolean(card.discarded));
  }

  // Until the card goes, what was discarded can be brought back.
  setDiscarded(card, discarded) {
    card.discarded = discarded;
    const [label, actions, restoreActions] = card.querySelector(".unsent").children;
    label.hidden = actions.hidden = discarded;
    restoreActions.hidden = !discarded;
    if (discarded) forgetUnsentText(card.dataset.key);
  }

  scheduleRemoval(card) {
    clearTimeout(card.timer);
    card.timer = setTimeout(() => {
      const inUse = card.contains(document.activeElement) || card.matches(":hover") || (card.unsentText && !card.sent && !card.discarded);
      if (inUse || this.wouldMoveCardInUse(card)) this.scheduleRemoval(card);
      else this.cardList.removeCard(card);
    }, LINGER_MS);
  }

  // True if the card in use would move when this one is gone: the page cannot scroll above its top.
  wouldMoveCardInUse(card) {
    const anchor = this.cardList.anchorCard();
    const isAbove = anchor && card.compareDocumentPosition(anchor) & Node.DOCUMENT_POSITION_FOLLOWING;
    return Boolean(isAbove) && scrollY < card.offsetHeight + 20;
  }
}
