// Starts the inbox page and the page of one question: connects cards, clicks, keys and the stream.

import { Answering } from "./answering.js";
import { growTextFields, unfoldQuestion } from "./card-element.js";
import { CardList } from "./card-list.js";
import { EventStream } from "./event-stream.js";
import { announce, startEveryPage } from "./every-page.js";
import { startInputGuard } from "./input-guard.js";
import { startKeyboard } from "./keyboard.js";
import { saveUnsentText } from "./unsent-text.js";

startInputGuard();
startEveryPage();

const cardList = new CardList(document.getElementById("list"));
const answering = new Answering(cardList);
startKeyboard(cardList, answering);

const cardActions = {
  decline: (card) => answering.openDeclinePanel(card),
  "confirm-now": (card) => answering.submit(card, { isAgreed: true }),
  edit: (card, button) => answering.openEditPanel(card, button),
  "edit-now": (card) => answering.allowEdited(card),
  "decline-now": (card) => answering.decline(card),
  snooze: (card) => answering.openSnoozePanel(card),
  "snooze-now": (card, button) => {
    answering.closePanel(card);
    cardList.snoozeCard(card, Number(button.dataset.until));
  },
  undo: (card) => answering.undo(card),
  "send-now": (card) => answering.sendNow(card),
  close: (card) => answering.closePanel(card),
  retry: (card) => answering.postAction(card, "retry", {}),
  dismiss: (card) => answering.postAction(card, "dismiss", {}),
  unfold: (card, button) => {
    unfoldQuestion(card, button.closest(".question").dataset.number);
    answering.setStatus(card, "");
    // The button is gone with the fold.
    card.focus({ preventScroll: true });
  },
  copy: (card) => copyText(card.querySelector(".unsent textarea")),
  discard: (card) => cardList.endedCards.setDiscarded(card, true),
  keep: (card) => cardList.endedCards.setDiscarded(card, false),
};

document.addEventListener("click", (event) => {
  const card = event.target.closest(".card");
  if (!card) return;
  const button = event.target.closest("[data-do]");
  const option = event.target.closest(".option[aria-pressed]");
  if (button) cardActions[button.dataset.do]?.(card, button);
  else if (option) answering.chooseOption(card, option);
  else if (card.classList.contains("asleep") && !event.target.closest("a")) cardList.wakeCard(card);
});

document.addEventListener("submit", (event) => {
  const card = event.target.closest(".card");
  if (!card) return;
  event.preventDefault();
  answering.submit(card);
});

document.addEventListener("input", (event) => {
  const card = event.target.closest(".card");
  if (!card || card.classList.contains("over") || event.target.matches("[data-reason]")) return;
  if (event.target.matches("[data-edited]")) card.editedText = event.target.value;
  saveUnsentText(card);
  growTextFields(card);
});

navigator.serviceWorker?.addEventListener("message", (event) => {
  const card = cardList.findCard(event.data.show?.replace(/^\/q\//, ""));
  if (card) cardList.focusCard(card);
});

// Who opens the field for other words wants to write.
document.addEventListener("toggle", (event) => {
  if (event.target.matches(".card details.own") && event.target.open && !event.target.querySelector("textarea").value) {
    event.target.querySelector("textarea").focus({ preventScroll: true });
  }
}, true);

addEventListener("pagehide", () => answering.sendAllNow());

async function copyText(field) {
  field.select();
  try {
    await navigator.clipboard.writeText(field.value);
    announce("Copied");
  } catch {
    // Plain http has no clipboard: the text is selected, for Ctrl+C.
    announce("Selected: press Ctrl+C to copy");
  }
}

new EventStream({
  sync: (body) => cardList.onSync(body),
  card: (body) => cardList.onCard(body),
  over: (body) => cardList.onEnded(body),
});
