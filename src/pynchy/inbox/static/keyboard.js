// The keys of the inbox page. Which key does what comes from the host.

import { isTextField, openHelp, singleKeysEnabled } from "./every-page.js";
import { isIgnoringInput } from "./input-guard.js";
import { pageData } from "./page-data.js";

export function startKeyboard(cardList, answering) {
  const actions = {
    next: () => focusBy(cardList, 1),
    previous: () => focusBy(cardList, -1),
    next_waiting: () => focusNextWaiting(cardList),
    choose: (card, event) => card && chooseByNumber(card, Number(event.key), answering),
    send: (card) => card && answering.submit(card, { atOnce: true }),
    write: (card) => card && answering.startWriting(card),
    decline: (card) => card && answering.openDeclinePanel(card),
    undo: (card) => card && answering.undo(card),
    snooze: (card) => card && answering.openSnoozePanel(card),
    search: () => cardList.searchField?.focus(),
    help: openHelp,
    leave: (card) => card && answering.closePanel(card),
  };

  document.addEventListener("keydown", (event) => {
    const card = cardList.focusedCard();
    if (event.defaultPrevented || event.isComposing || document.querySelector("dialog[open]")) return;
    if (event.key === "Escape") return onEscape(event, card, answering);
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && card) {
      event.preventDefault();
      return answering.submit(card, { atOnce: true });
    }
    if (event.target.matches("[data-reason]") && event.key === "Enter") {
      event.preventDefault();
      return answering.decline(card);
    }
    if (event.ctrlKey || event.metaKey || event.altKey || isTextField(event.target)) return;
    if (event.key === "Enter") return onEnter(event, card, answering);
    if (!singleKeysEnabled() || (card && isIgnoringInput(card))) return;
    const action = pageData.keys[event.key];
    if (!action || event.repeat && action !== "next" && action !== "previous") return;
    event.preventDefault();
    actions[action](card, event);
  });
}

// Show more below the focused card. False if the focus has moved meanwhile, or is in a text field.
async function showMoreBelow(cardList) {
  const current = cardList.focusedCard();
  await cardList.showMore();
  return cardList.focusedCard() === current && !isTextField(document.activeElement);
}

async function focusBy(cardList, offset) {
  const index = cardList.visibleCards().indexOf(cardList.focusedCard());
  const isLast = offset > 0 && index === cardList.visibleCards().length - 1;
  if (isLast && cardList.hasMore() && !(await showMoreBelow(cardList))) return;
  const visible = cardList.visibleCards();
  cardList.focusCard(visible[index < 0 ? (offset > 0 ? 0 : visible.length - 1) : Math.min(Math.max(index + offset, 0), visible.length - 1)]);
}

// The next one that waits below, else the most urgent of all.
async function focusNextWaiting(cardList) {
  const current = cardList.focusedCard();
  const isBelow = (card) => current && current.compareDocumentPosition(card) & Node.DOCUMENT_POSITION_FOLLOWING;
  const isLast = current && !cardList.waitingCards().some(isBelow);
  if (isLast && cardList.hasMore() && !(await showMoreBelow(cardList))) return;
  const waiting = cardList.waitingCards();
  cardList.focusCard(waiting.find(isBelow) ?? waiting[0]);
}

function chooseByNumber(card, digit, answering) {
  const question = document.activeElement.closest(".question") ?? firstUnanswered(card);
  const option = question?.querySelector(`[data-option="${digit}"]`);
  if (!option || card.dataset.mode || (option.closest("[inert]") && answering.pointToFolded(card))) return;
  if (option.matches("input")) {
    option.click();
    option.focus({ preventScroll: true });
  } else {
    answering.markOption(card, option);
  }
}

function firstUnanswered(card) {
  const questions = [...card.querySelectorAll(".question")];
  return questions.find((question) => !question.querySelector("input:checked") && question.querySelector("[data-option]")) ?? questions[0];
}

// Enter on a control is its own business, but for options and Send: those send at once.
function onEnter(event, card, answering) {
  if (!card) return;
  if (event.target.matches(".option[aria-pressed]")) {
    event.preventDefault();
    if (event.repeat || card.dataset.mode) return;
    answering.markOption(card, event.target);
    answering.submit(card, { atOnce: true });
  } else if (event.target === card || event.target.matches("input[data-option], [type=submit]")) {
    event.preventDefault();
    if (!event.repeat) answering.submit(card, { atOnce: true });
  }
}

function onEscape(event, card, answering) {
  if (card && card.dataset.mode !== "undo" && answering.closePanel(card)) return;
  if (isTextField(event.target)) (card ?? document.getElementById("main")).focus({ preventScroll: true });
}
