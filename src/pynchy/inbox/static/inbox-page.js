// The list of what waits, and the page of one question.

import { Answering } from "./answering.js";
import { grow } from "./card-element.js";
import { CardList } from "./card-list.js";
import { Stream } from "./event-stream.js";
import { say, startShell } from "./every-page.js";
import { startGuard } from "./input-guard.js";
import { startKeys } from "./keyboard.js";
import * as unsent from "./unsent-text.js";

startGuard();
startShell();

const cards = new CardList(document.getElementById("list"));
const answering = new Answering(cards);
startKeys(cards, answering);

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
  unsent.save(card);
  grow(card);
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
    say("Copied");
  } catch {
    // Plain http has no clipboard: the text is selected, for Ctrl+C.
    say("Selected: press Ctrl+C to copy");
  }
}

new Stream({
  sync: (body) => cards.sync(body),
  card: (body) => cards.take(body),
  over: (body) => cards.end(body),
});
