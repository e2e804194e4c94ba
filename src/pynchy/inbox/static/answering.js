// Sends answers and declines: shown at once, called answered only when the host has it on its disk.

import { foldedQuestion, openOwnWords, readFields } from "./card-element.js";
import { formatDuration } from "./clock.js";
import { announce } from "./every-page.js";
import { postToHost } from "./host-requests.js";
import { ignoreInputBriefly } from "./input-guard.js";
import { hostNow, pageData } from "./page-data.js";
import { snoozeChoices } from "./snooze.js";
import { forgetUnsentText, saveUnsentText } from "./unsent-text.js";

const TIMEOUT_MS = 20000;
const MAX_KEEPALIVE_LENGTH = 20000;
// A choice that should have been sent so long ago was not: the page slept.
const TOO_LATE_MS = 10000;

// True if nothing can be chosen on the card: it is being sent, or over.
function isReadOnly(card) {
  return Boolean(card.dataset.mode) || card.classList.contains("over");
}

// True if the part answers nothing: what was answered before may be left empty, and where a choice
// is needed, words alone are no answer.
function isUnanswered(question, part) {
  if (part.options.length) return false;
  if (part.text.trim()) return "choose" in question.dataset;
  return !("answered" in question.dataset);
}

export class Answering {
  constructor(cardList) {
    this.cardList = cardList;
  }

  // Mark an option of a card on which one choice is enough, without sending it.
  markOption(card, option) {
    if (isReadOnly(card) || this.pointToFolded(card)) return;
    for (const other of card.querySelectorAll(".option[aria-pressed]")) {
      other.setAttribute("aria-pressed", String(other === option));
    }
    const label = option.querySelector(".label").textContent;
    this.setStatus(card, `Enter sends “${label}”, u takes it back`);
    announce(`${label}. Enter sends it.`);
  }

  unmarkOptions(card) {
    for (const option of card.querySelectorAll(".option[aria-pressed]")) option.setAttribute("aria-pressed", "false");
    this.setStatus(card, "");
  }

  // A choice was made by a click: send it, after the time in which it can be taken back.
  chooseOption(card, option) {
    if (isReadOnly(card) || this.pointToFolded(card)) return;
    this.markOption(card, option);
    this.submit(card);
  }

  submit(card, { atOnce = false } = {}) {
    if (card.dataset.mode === "undo") return this.sendNow(card);
    if (isReadOnly(card)) return;
    if ("excerpt" in card.dataset) return card.querySelector("[data-whole]").click();
    if (this.pointToFolded(card)) return;
    const parts = readFields(card);
    const questions = [...card.querySelectorAll(".question")];
    const unanswered = parts.findIndex((part, index) => isUnanswered(questions[index], part));
    if (unanswered >= 0) return this.pointToUnanswered(card, unanswered, parts.length);
    this.closePanel(card);
    this.sendAfterDelay(card, atOnce ? 0 : pageData.undo[card.dataset.urgency], () => this.sendAnswer(card));
  }

  // True if a question is not shown whole yet; nobody answers what they could not read.
  pointToFolded(card) {
    const folded = foldedQuestion(card);
    if (!folded) return false;
    const text = "Show all of the question first";
    this.setStatus(card, text, "bad");
    announce(text);
    folded.querySelector("[data-do=unfold]").focus();
    return true;
  }

  startWriting(card) {
    const questions = [...card.querySelectorAll(".question")];
    const here = document.activeElement.closest(".question");
    const parts = readFields(card);
    const field = (here ?? questions.find((question, index) => isUnanswered(question, parts[index])) ?? card).querySelector("[data-text]")
      ?? card.querySelector("[data-text]");
    if (!field || this.pointToFolded(card)) return;
    openOwnWords(field);
    field.focus();
  }

  sendAfterDelay(card, waitMs, send) {
    card.pendingSend = send;
    if (waitMs > 0) this.startCountdown(card, waitMs);
    else card.pendingSend();
  }

  pointToUnanswered(card, unanswered, count) {
    const question = card.querySelectorAll(".question")[unanswered];
    const hint = "choose" in question.dataset ? "Choose an option first" : "Choose an option or write something first";
    const text = count > 1 ? `Question ${unanswered + 1} has no answer yet` : hint;
    this.setStatus(card, text, "bad");
    announce(text);
    (question.querySelector("[data-option]") ?? question.querySelector("[data-text]")).focus();
  }

  startCountdown(card, waitMs) {
    card.dataset.mode = "undo";
    this.setLocked(card, true);
    this.setStatus(card, "");
    const panel = this.openPanel(card, '<p><strong data-wait></strong></p><div class="actions"><button type="button" data-do="undo">Take it back <kbd aria-hidden="true">u</kbd></button><button type="button" class="primary" data-do="send-now">Send now <kbd aria-hidden="true">↵</kbd></button></div>');
    const end = Date.now() + waitMs;
    const countDown = () => {
      const leftMs = end - Date.now();
      if (leftMs < -TOO_LATE_MS) return this.takeBack(card, "Not sent: this page was asleep. Choose again.");
      if (leftMs <= 0) return this.sendNow(card);
      panel.querySelector("[data-wait]").textContent = `Sending in ${Math.ceil(leftMs / 1000)} s…`;
      card.timer = setTimeout(countDown, Math.min(leftMs, 200));
    };
    countDown();
    announce("It is sent in a few seconds. u takes it back.");
    card.focus({ preventScroll: true });
  }

  sendNow(card) {
    clearTimeout(card.timer);
    delete card.dataset.mode;
    this.closePanel(card);
    card.pendingSend();
  }

  // For a page that closes: nobody can take anything back any more.
  sendAllNow() {
    for (const card of document.querySelectorAll('.card[data-mode="undo"]')) this.sendNow(card);
  }

  undo(card) {
    if (card.dataset.mode === "undo") {
      this.takeBack(card, "Taken back. Nothing was sent.");
      card.focus({ preventScroll: true });
    } else if (!isReadOnly(card)) {
      this.unmarkOptions(card);
    }
  }

  takeBack(card, text) {
    clearTimeout(card.timer);
    delete card.dataset.mode;
    this.setLocked(card, false);
    this.closePanel(card);
    this.unmarkOptions(card);
    this.setStatus(card, text);
    announce(text);
    this.cardList.refetchIfOutdated(card);
  }

  sendAnswer(card) {
    const answers = readFields(card).map((part) => ({ options: part.options, text: part.text.trim() || null }));
    saveUnsentText(card);
    card.sent = true;
    return this.postAction(card, "answer", { answers });
  }

  async postAction(card, action, body) {
    const key = card.dataset.key;
    const [group, id] = [key.slice(0, key.indexOf("/")), key.slice(key.indexOf("/") + 1)];
    card.dataset.mode = "sending";
    this.setLocked(card, true);
    this.setStatus(card, "Sending…", "busy");
    const payload = { group, ...body };
    let reply;
    try {
      reply = await postToHost(`/api/questions/${encodeURIComponent(id)}/${action}`, payload, {
        // It outlives the page, unless it is longer than browsers allow for that.
        keepalive: JSON.stringify(payload).length < MAX_KEEPALIVE_LENGTH,
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
    } catch {
      return this.showFailure(card, "Not sent: the host does not answer. What you chose is kept; try again.");
    }
    const replyBody = await reply.json().catch(() => ({}));
    delete card.dataset.mode;
    if (reply.ok) {
      forgetUnsentText(key);
      await this.cardList.fetchCards([key]);
    } else if (reply.status === 409 && replyBody.outcome) {
      await this.cardList.fetchCards([key]);
      this.showTooLate(card, replyBody);
    } else if (reply.status === 401) {
      this.showFailure(card, "Not sent: this browser is signed out. Sign in again with: pynchy inbox --open");
    } else {
      this.showFailure(card, `Not taken: ${replyBody.error ?? `the host said ${reply.status}`}`);
    }
  }

  showTooLate(card, replyBody) {
    card.sent = false;
    card.lateNotice = document.createElement("p");
    card.lateNotice.className = "late";
    card.lateNotice.textContent = `Not yours: somebody was first. It was ${replyBody.summary}.`;
    card.querySelector(".result")?.prepend(card.lateNotice);
    announce(card.lateNotice.textContent);
    this.cardList.endedCards.offerUnsentText(card);
  }

  showFailure(card, text) {
    delete card.dataset.mode;
    card.sent = false;
    this.setLocked(card, false);
    this.setStatus(card, text, "bad");
    announce(text);
    this.cardList.refetchIfOutdated(card);
  }

  openDeclinePanel(card) {
    if (isReadOnly(card)) return;
    const panel = this.openPanel(card, '<label><span>Why? The agent reads it (optional)</span><input data-reason maxlength="2000"></label><div class="actions"><button type="button" class="danger" data-do="decline-now">Decline <kbd aria-hidden="true">↵</kbd></button><button type="button" class="quiet" data-do="close">Keep it open <kbd aria-hidden="true">Esc</kbd></button></div>');
    this.setExpanded(card, "decline");
    const field = panel.querySelector("input");
    field.value = card.reason ?? "";
    field.focus({ preventScroll: true });
    panel.scrollIntoView({ block: "nearest" });
    // A second click or Enter meant for the first button declines nothing.
    ignoreInputBriefly(card);
  }

  decline(card) {
    card.reason = card.querySelector("[data-reason]")?.value.trim() || null;
    this.closePanel(card);
    this.sendAfterDelay(card, pageData.undo[card.dataset.urgency], () => {
      card.sent = true;
      return this.postAction(card, "decline", { reason: card.reason });
    });
  }

  openSnoozePanel(card) {
    if (isReadOnly(card)) return;
    const choices = snoozeChoices(card);
    const panel = this.openPanel(card, '<p class="choices-head">Hide it for</p><div class="actions"></div>');
    this.setExpanded(card, "snooze");
    const buttons = panel.querySelector(".actions");
    for (const choice of choices) {
      const button = document.createElement("button");
      button.type = "button";
      button.dataset.do = "snooze-now";
      button.dataset.until = String(choice.until);
      button.textContent = choice.cutShort ? `${formatDuration((choice.until - hostNow()) / 1000)} (it ends soon)` : choice.text;
      buttons.append(button);
      if (choice.cutShort) break;
    }
    if (!choices.length) panel.querySelector("p").textContent = "It ends too soon to be hidden.";
    buttons.insertAdjacentHTML("beforeend", '<button type="button" class="quiet" data-do="close">Cancel <kbd aria-hidden="true">Esc</kbd></button>');
    buttons.querySelector("button").focus({ preventScroll: true });
    panel.scrollIntoView({ block: "nearest" });
  }

  openPanel(card, html) {
    const panel = card.querySelector(".panel");
    panel.innerHTML = html;
    panel.hidden = false;
    return panel;
  }

  setExpanded(card, openPanelName) {
    for (const button of card.querySelectorAll("[aria-expanded][data-do=decline], [aria-expanded][data-do=snooze]")) {
      button.setAttribute("aria-expanded", String(button.dataset.do === openPanelName));
    }
  }

  closePanel(card) {
    const panel = card.querySelector(".panel");
    if (!panel || panel.hidden) return false;
    const focused = panel.contains(document.activeElement);
    panel.hidden = true;
    panel.replaceChildren();
    this.setExpanded(card, null);
    if (focused) card.focus({ preventScroll: true });
    return true;
  }

  setStatus(card, text, kind = "") {
    const status = card.querySelector(".status");
    if (!status) return;
    status.textContent = text;
    status.hidden = !text;
    status.className = `status ${kind}`;
  }

  setLocked(card, locked) {
    // What is disabled loses the focus; the card keeps it.
    if (locked && card.contains(document.activeElement)) card.focus({ preventScroll: true });
    card.classList.toggle("locked", locked);
    card.setAttribute("aria-busy", String(locked));
    for (const control of card.querySelectorAll("form > fieldset, form > .actions button")) control.disabled = locked;
  }
}
