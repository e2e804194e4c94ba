// Cards whose question is over: they show how it ended, offer the unsent text to copy, and are removed
// after a while. What was answered here shrinks to two lines as soon as that moves nothing that
// somebody may be about to click.

import { cardFromHtml, writtenText } from "./card-element.js";
import { updateTimes } from "./clock.js";
import { announce, isTextField } from "./every-page.js";
import { ignoreInputBriefly, ignoreTypingUntilPause } from "./input-guard.js";
import { forgetUnsentText, unsentTextOf } from "./unsent-text.js";

const LINGER_MS = 8000;
const RETRY_SHRINK_MS = 500;
// A finger that was on the screen this long ago may be about to land again.
const TOUCHED_MS = 1500;
// A hand does not hold the mouse quite still while it clicks.
const STILL_PIXELS = 10;
let lastPointerAt = 0;
// Where the pointer was last pressed, for as long as it stays there.
let restingAt = null;

for (const kind of ["pointermove", "pointerdown", "touchmove", "wheel"]) {
  addEventListener(kind, (event) => {
    lastPointerAt = Date.now();
    if (kind === "pointerdown") restingAt = { x: event.clientX, y: event.clientY, card: event.target.closest?.(".card") };
    else if (kind !== "pointermove") restingAt = null;
    else if (restingAt && Math.hypot(event.clientX - restingAt.x, event.clientY - restingAt.y) > STILL_PIXELS) restingAt = null;
  }, { passive: true, capture: true });
}

function canHover() {
  return matchMedia("(hover: hover)").matches;
}

function isBelow(card, other) {
  return Boolean(card.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_FOLLOWING);
}

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
    const wasCompact = card.classList.contains("compact");
    card.className = newCard.className;
    card.removeAttribute("aria-busy");
    card.classList.toggle("compact", wasCompact);
    card.replaceChildren(...newCard.childNodes);
    updateTimes(card);
    if (focused) card.focus({ preventScroll: true });
    if (card.lateNotice) card.querySelector(".result").prepend(card.lateNotice);
    if (!card.sent) this.offerUnsentText(card);
    if (justEnded) announce(card.querySelector(".outcome").textContent.trim());
    if (this.cardList.onlyKey) return;
    if (card.sent) this.shrink(card);
    this.scheduleRemoval(card);
  }

  // Show two lines of it. Whoever answered it is done with it, and the cards that move up ignore input
  // for a moment; a card below that is pointed at or written in does not move.
  shrink(card) {
    if (!card.isConnected || !card.sent) return;
    if (this.isUsedBelow(card)) {
      setTimeout(() => this.cardList.withCardsInPlace(() => this.shrink(card)), RETRY_SHRINK_MS);
      return;
    }
    card.classList.add("compact");
    card.style.minHeight = "";
  }

  // True if somebody points at a card below this one, or writes in it.
  isUsedBelow(card) {
    // Where the pointer rests since it answered this card, what slipped under it is not pointed at.
    const points = canHover() && restingAt?.card !== card;
    const hovered = points ? this.cardList.list.querySelector(":scope > .card:hover") : null;
    const written = isTextField(document.activeElement) ? this.cardList.focusedCard() : null;
    return [hovered, written].some((other) => other && other !== card && isBelow(card, other));
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
      if (this.isInUse(card) || this.wouldMoveCardInUse(card)) this.scheduleRemoval(card);
      else this.cardList.removeCard(card);
    }, LINGER_MS);
  }

  // True if somebody reads or uses the card. That a finger once touched it, or that it has kept the
  // focus since it was answered, says nothing.
  isInUse(card) {
    const active = document.activeElement;
    const idleMs = Date.now() - lastPointerAt;
    const isPointedAt = canHover() ? card.matches(":hover") && idleMs < LINGER_MS : idleMs < TOUCHED_MS;
    return isPointedAt || (active !== card && card.contains(active)) || Boolean(card.unsentText && !card.sent && !card.discarded);
  }

  // True if the card in use would move when this one is gone: the page cannot scroll above its top.
  wouldMoveCardInUse(card) {
    if (this.isUsedBelow(card)) return scrollY < card.offsetHeight + 20;
    // A finger is over nothing until it lands.
    return !canHover() && Date.now() - lastPointerAt < TOUCHED_MS;
  }
}
