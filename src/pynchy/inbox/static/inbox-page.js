// The list of what waits, and the page of one question.

import { Answering } from "./answering.js";
import { growTextFields } from "./card-element.js";
import { CardList } from "./card-list.js";
import { EventStream } from "./event-stream.js";
import { announce, startEveryPage } from "./every-page.js";
import { startInputGuard } from "./input-guard.js";
import { startKeyboard } from "./keyboard.js";
import { saveUnsentText } from "./unsent-text.js";

startInputGuard();
startEveryPage();

const cards = new CardList(document.getElementById("list"));
const answering = new Answering(cards);
startKeyboard(cards, answering);

const acts = {
  decline: (card) => answering.askReason(card),
  "decline-now": (card) => answering.decline(card),
  snooze: (card) => answering.askSnooze(card),
  "snooze-now": (card, button) => {
    answering.close(card);
    cards.snooze(card, Number(button.dataset.until));
  },
  undo: (card) => answering.undo(card),
  "send-now": (card) => answering.sendNow(card),
  close: (card) => answering.close(card),
  retry: (card) => answering.post(card, "retry", {}),
  dismiss: (card) => answering.post(card, "dismiss", {}),
  unfold: (card, button) => unfold(button),
  copy: (card) => copy(card.querySelector(".unsent textarea")),
  discard: (card) => cards.ended.discard(card, true),
  keep: (card) => cards.ended.discard(card, false),
};

document.addEventListener("click", (event) => {
  const card = event.target.closest(".card");
  if (!card) return;
  const button = event.target.closest("[data-do]");
  const option = event.target.closest(".option[aria-pressed]");
  if (button) acts[button.dataset.do]?.(card, button);
  else if (option) answering.choose(card, option);
  else if (card.classList.contains("asleep") && !event.target.closest("a")) cards.rouse(card);
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
  saveUnsentText(card);
  growTextFields(card);
});

navigator.serviceWorker?.addEventListener("message", (event) => {
  const card = cards.find(event.data.show?.replace(/^\/q\//, ""));
  if (card) cards.focus(card);
});

addEventListener("pagehide", () => answering.leave());

function unfold(button) {
  const open = button.getAttribute("aria-expanded") !== "true";
  if (open) button.dataset.closed = button.textContent;
  button.setAttribute("aria-expanded", String(open));
  button.previousElementSibling.classList.toggle("clamp", !open);
  button.textContent = open ? "Show less" : button.dataset.closed;
}

async function copy(field) {
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
  sync: (body) => cards.sync(body),
  card: (body) => cards.take(body),
  over: (body) => cards.end(body),
});
