// Sends answers and declines: shown at once, called answered only when the host has it on its disk.

import { foldedQuestion, isUnanswered, openOwnWords, readFields } from "./card-element.js";
import { announce } from "./every-page.js";
import { postToHost } from "./host-requests.js";
import { ignoreInputBriefly } from "./input-guard.js";
import { pageData } from "./page-data.js";
import { fillSnoozePanel, snoozeChoices } from "./snooze.js";
import { forgetUnsentText, saveUnsentText } from "./unsent-text.js";

const TIMEOUT_MS = 20000;
const MAX_KEEPALIVE_LENGTH = 20000;
// A choice that should have been sent so long ago was not: the page slept.
const TOO_LATE_MS = 10000;
// The status of a reply to an answer that was taken and ends nothing yet.
const STILL_OPEN = 202;

// True if nothing can be chosen on the card: it is being sent, or over.
function isReadOnly(card) {
  return Boolean(card.dataset.mode) || card.classList.contains("over");
}

// How long a choice can be taken back: longer where much depends on it.
function undoMs(card) {
  return pageData.undo["careful" in card.dataset ? "high" : card.dataset.urgency];
}

export class Answering {
  constructor(cardList) {
    this.cardList = cardList;
  }

  // Mark an option of a card on which one choice is enough, without sending it.
  markOption(card, option) {
    if (isReadOnly(card) || this.pointToFolded(card)) return;
    // What was to be confirmed was another option.
    if (card.querySelector(".panel .confirm")) this.closePanel(card);
    this.pressOption(card, option);
    const label = option.querySelector(".label").textContent;
    this.setStatus(card, `Enter sends “${label}”, u takes it back`);
    announce(`${label}. Enter sends it.`);
  }

  // The wider form of an option that is not listed by itself looks chosen with it.
  pressOption(card, option) {
    for (const other of card.querySelectorAll(".option[aria-pressed]")) {
      other.setAttribute("aria-pressed", String(other === option));
      other.classList.toggle("narrowed", Boolean(option) && option.dataset.narrows === other.dataset.value);
    }
  }

  unmarkOptions(card) {
    this.pressOption(card, null);
    this.setStatus(card, "");
  }

  // A choice was made by a click: send it, after the time in which it can be taken back.
  chooseOption(card, option) {
    if (isReadOnly(card) || this.pointToFolded(card)) return;
    this.markOption(card, option);
    this.submit(card);
  }

  submit(card, { atOnce = false, isAgreed = false } = {}) {
    if (card.dataset.mode === "undo") return this.sendNow(card);
    // Whoever edits a call never means the call as it was.
    if (card.querySelector("[data-edited]")) return this.allowEdited(card);
    if (isReadOnly(card)) return;
    if ("excerpt" in card.dataset) return card.querySelector("[data-whole]").click();
    if (this.pointToFolded(card)) return;
    const parts = readFields(card);
    const questions = [...card.querySelectorAll(".question")];
    const unanswered = parts.findIndex((part, index) => isUnanswered(questions[index], part));
    if (unanswered >= 0) return this.pointToUnanswered(card, unanswered, parts.length);
    const chosen = card.querySelector(".option[aria-pressed=true][data-confirm]");
    if (chosen && !isAgreed) return this.openConfirmPanel(card, chosen);
    this.closePanel(card);
    this.sendAfterDelay(card, atOnce ? 0 : undoMs(card), () => this.sendAnswer(card));
  }

  // A choice that does more than answer: it says what, and counts when the person agrees.
  openConfirmPanel(card, option) {
    const panel = this.openPanel(card, '<p class="confirm" aria-live="polite"></p><div class="actions"><button type="button" class="primary" data-do="confirm-now">Yes <kbd aria-hidden="true">↵</kbd></button><button type="button" class="quiet" data-do="close">Cancel <kbd aria-hidden="true">Esc</kbd></button></div>');
    panel.querySelector(".confirm").textContent = option.dataset.confirm;
    this.offerScopes(card, option, panel);
    this.setStatus(card, "");
    announce(`${option.dataset.confirm} Enter agrees.`);
    const agree = panel.querySelector("[data-do=confirm-now]");
    agree.focus({ preventScroll: true });
    panel.scrollIntoView({ block: "nearest" });
    // A second click or Enter meant for the option agrees to nothing. All other choices count at once.
    ignoreInputBriefly(agree);
  }

  // Where the choice has a narrower form, the person says here which of the two it is.
  offerScopes(card, option, panel) {
    const wide = option.dataset.narrows ?? option.dataset.value;
    const forms = card.querySelectorAll(`.option[data-value="${wide}"], .option[data-narrows="${wide}"]`);
    if (forms.length < 2) return;
    const scopes = document.createElement("div");
    scopes.className = "scopes";
    scopes.setAttribute("role", "radiogroup");
    scopes.setAttribute("aria-label", "For whom");
    for (const form of forms) {
      const label = document.createElement("label");
      const input = Object.assign(document.createElement("input"), { type: "radio", name: `${card.id}-scope`, checked: form === option });
      input.addEventListener("change", () => {
        this.pressOption(card, form);
        panel.querySelector(".confirm").textContent = form.dataset.confirm;
      });
      label.append(input, form.querySelector(".label").textContent.replace(/…$/, ""));
      scopes.append(label);
    }
    panel.querySelector(".confirm").after(scopes);
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
      const shownBefore = this.cardList.revisions.get(key);
      await this.cardList.fetchCards([key]);
      const isRepeated = this.cardList.revisions.get(key) === shownBefore;
      if (reply.status === STILL_OPEN && !isReadOnly(card)) this.showStillOpen(card, replyBody, isRepeated);
    } else if (reply.status === 409 && replyBody.outcome) {
      await this.cardList.fetchCards([key]);
      this.showTooLate(card, replyBody);
    } else if (reply.status === 401) {
      this.showFailure(card, "Not sent: this browser is signed out. Sign in again with: pynchy inbox --open");
    } else {
      this.showFailure(card, `Not taken: ${replyBody.error ?? `the host said ${reply.status}`}`);
    }
  }

  // The host has it and waits for more: the approval of somebody else, or another part.
  showStillOpen(card, replyBody, isRepeated) {
    const text = replyBody.approvals_needed > 1
      ? `You have approved${isRepeated ? " already" : ""}; another person must approve too`
      : "Taken. Another part of it still needs an answer";
    card.sent = false;
    this.setLocked(card, false);
    this.unmarkOptions(card);
    this.setStatus(card, text);
    announce(text);
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
    // Who denies has declined: one way to say no is enough.
    if ("careful" in card.dataset) return card.querySelector('.option[data-value="deny"]')?.focus();
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
    this.sendAfterDelay(card, undoMs(card), () => {
      card.sent = true;
      return this.postAction(card, "decline", { reason: card.reason });
    });
  }

  // The call as it is, to be changed: a command as it is typed, anything else as JSON.
  openEditPanel(card, button) {
    if (isReadOnly(card) || this.pointToFolded(card)) return;
    this.unmarkOptions(card);
    const panel = this.openPanel(card, '<label><span></span><textarea data-edited rows="3" dir="ltr" spellcheck="false" autocapitalize="off"></textarea></label><div class="actions"><button type="button" class="primary" data-do="edit-now">Allow edited</button><button type="button" class="quiet" data-do="close">Cancel <kbd aria-hidden="true">Esc</kbd></button></div>');
    this.setExpanded(card, "edit");
    const isCommand = button.dataset.as === "command";
    const what = isCommand ? "The command" : "The call, as JSON,";
    panel.querySelector("span").textContent = `${what} that is run once in its place. The agent is told what you changed.`;
    const field = panel.querySelector("textarea");
    const input = JSON.parse(button.dataset.input);
    field.value = isCommand ? input.command : JSON.stringify(input, null, 2);
    // As the field has it: it knows no line ends but one.
    field.dataset.edited = field.value;
    field.value = card.editedText ?? field.value;
    field.focus({ preventScroll: true });
    panel.scrollIntoView({ block: "nearest" });
  }

  // Nothing that was not changed is allowed by this, so no second click can be.
  allowEdited(card) {
    const field = card.querySelector("[data-edited]");
    const button = card.querySelector("[data-do=edit]");
    if (isReadOnly(card) || !field || !button) return;
    const text = field.value;
    if (!text.trim()) return this.refuseEdit(card, "Nothing is left of it. Deny it instead, or cancel.");
    if (text === field.dataset.edited) return this.refuseEdit(card, "Nothing was changed. Cancel, and choose Allow once.");
    let edited;
    try {
      edited = button.dataset.as === "command" ? { ...JSON.parse(button.dataset.input), command: text } : JSON.parse(text);
    } catch (error) {
      return this.refuseEdit(card, `This is no JSON: ${error.message}`);
    }
    const [part] = readFields(card);
    const approve = Number(card.querySelector('[data-value="approve"]').dataset.option);
    card.editedText = text;
    this.closePanel(card);
    this.sendAfterDelay(card, undoMs(card), () => {
      saveUnsentText(card);
      card.sent = true;
      return this.postAction(card, "answer", { answers: [{ options: [approve], text: part.text.trim() || null }], edited });
    });
  }

  refuseEdit(card, text) {
    this.setStatus(card, text, "bad");
    announce(text);
    card.querySelector("[data-edited]").focus();
  }

  openSnoozePanel(card) {
    if (isReadOnly(card)) return;
    const panel = this.openPanel(card, '<p class="choices-head">Hide it for</p><div class="actions"></div>');
    this.setExpanded(card, "snooze");
    fillSnoozePanel(panel, snoozeChoices(card));
    panel.querySelector("button").focus({ preventScroll: true });
    panel.scrollIntoView({ block: "nearest" });
  }

  openPanel(card, html) {
    const panel = card.querySelector(".panel");
    panel.innerHTML = html;
    panel.hidden = false;
    return panel;
  }

  setExpanded(card, openPanelName) {
    for (const button of card.querySelectorAll("[aria-expanded][data-do=decline], [aria-expanded][data-do=snooze], [aria-expanded][data-do=edit]")) {
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
