// Keys of the list. The table itself comes from the host.

import { isTextField, openHelp, singleKeysEnabled } from "./every-page.js";
import { isIgnoringInput } from "./input-guard.js";
import { pageData } from "./page-data.js";

export function startKeyboard(cards, answering) {
  const actions = {
    next: () => step(cards, 1),
    previous: () => step(cards, -1),
    next_waiting: () => nextWaiting(cards),
    choose: (card, event) => card && number(card, Number(event.key), answering),
    send: (card) => card && answering.submit(card, { atOnce: true }),
    write: (card) => card?.querySelector("[data-text]")?.focus(),
    decline: (card) => card && answering.askReason(card),
    undo: (card) => card && answering.undo(card),
    snooze: (card) => card && answering.askSnooze(card),
    search: () => cards.search?.focus(),
    help: openHelp,
    leave: (card) => card && answering.close(card),
  };

  document.addEventListener("keydown", (event) => {
    const card = cards.current();
    if (event.defaultPrevented || event.isComposing || document.querySelector("dialog[open]")) return;
    if (event.key === "Escape") return escape(event, card, answering);
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && card) {
      event.preventDefault();
      return answering.submit(card, { atOnce: true });
    }
    if (event.target.matches("[data-reason]") && event.key === "Enter") {
      event.preventDefault();
      return answering.decline(card);
    }
    if (event.ctrlKey || event.metaKey || event.altKey || isTextField(event.target)) return;
    if (event.key === "Enter") return enter(event, card, answering);
    if (!singleKeysEnabled() || (card && isIgnoringInput(card))) return;
    const action = pageData.keys[event.key];
    if (!action || event.repeat && action !== "next" && action !== "previous") return;
    event.preventDefault();
    actions[action](card, event);
  });
}

// Show more below the card that is used. False for who has gone elsewhere meanwhile, or writes.
async function goOn(cards) {
  const here = cards.current();
  await cards.showMore();
  return cards.current() === here && !isTextField(document.activeElement);
}

async function step(cards, by) {
  const at = cards.shown().indexOf(cards.current());
  const isLast = by > 0 && at === cards.shown().length - 1;
  if (isLast && cards.hasMore() && !(await goOn(cards))) return;
  const shown = cards.shown();
  cards.focus(shown[at < 0 ? (by > 0 ? 0 : shown.length - 1) : Math.min(Math.max(at + by, 0), shown.length - 1)]);
}

// The next one that waits below, else the most urgent of all.
async function nextWaiting(cards) {
  const here = cards.current();
  const isBelow = (card) => here && here.compareDocumentPosition(card) & Node.DOCUMENT_POSITION_FOLLOWING;
  const isLast = here && !cards.waiting().some(isBelow);
  if (isLast && cards.hasMore() && !(await goOn(cards))) return;
  const waiting = cards.waiting();
  cards.focus(waiting.find(isBelow) ?? waiting[0]);
}

function number(card, digit, answering) {
  const question = document.activeElement.closest(".question") ?? unanswered(card);
  const option = question?.querySelector(`[data-option="${digit}"]`);
  if (!option || card.dataset.mode) return;
  if (option.matches("input")) {
    option.click();
    option.focus({ preventScroll: true });
  } else {
    answering.mark(card, option);
  }
}

function unanswered(card) {
  const questions = [...card.querySelectorAll(".question")];
  return questions.find((question) => !question.querySelector("input:checked") && question.querySelector("[data-option]")) ?? questions[0];
}

// Enter on a control is its own business, but for options and Send: those send at once.
function enter(event, card, answering) {
  if (!card) return;
  if (event.target.matches(".option[aria-pressed]")) {
    event.preventDefault();
    if (event.repeat || card.dataset.mode) return;
    answering.mark(card, event.target);
    answering.submit(card, { atOnce: true });
  } else if (event.target === card || event.target.matches("input[data-option], [type=submit]")) {
    event.preventDefault();
    if (!event.repeat) answering.submit(card, { atOnce: true });
  }
}

function escape(event, card, answering) {
  if (card && card.dataset.mode !== "undo" && answering.close(card)) return;
  if (isTextField(event.target)) (card ?? document.getElementById("main")).focus({ preventScroll: true });
}
