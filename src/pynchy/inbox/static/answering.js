// Sending answers: shown at once, called answered only when the host has it on its disk.

import { readFields } from "./card-element.js";
import { formatDuration } from "./clock.js";
import { announce } from "./every-page.js";
import { postToHost } from "./host-requests.js";
import { ignoreInputBriefly } from "./input-guard.js";
import { hostNow, pageData } from "./page-data.js";
import { snoozeChoices } from "./snooze.js";
import { forgetUnsentText, saveUnsentText } from "./unsent-text.js";

const TIMEOUT_MS = 20000;
const MOST_KEPT_ALIVE = 20000;
// A choice that should have been sent so long ago was not: the page slept.
const TOO_LATE_MS = 10000;

// True if nothing can be chosen on the card: it is being sent, or over.
function isShut(card) {
  return Boolean(card.dataset.mode) || card.classList.contains("over");
}

// True if the part answers nothing: what was answered before may be left empty, and where a choice
// is needed, words alone are no answer.
function isMissing(question, part) {
  if (part.options.length) return false;
  if (part.text.trim()) return "choose" in question.dataset;
  return !("answered" in question.dataset);
}

export class Answering {
  constructor(cards) {
    this.cards = cards;
  }

  // Mark an option of a card on which one choice is enough, without sending it.
  mark(card, option) {
    if (isShut(card)) return;
    for (const other of card.querySelectorAll(".option[aria-pressed]")) {
      other.setAttribute("aria-pressed", String(other === option));
    }
    const label = option.querySelector(".label").textContent;
    this.status(card, `Enter sends “${label}”, u takes it back`);
    announce(`${label}. Enter sends it.`);
  }

  unmark(card) {
    for (const option of card.querySelectorAll(".option[aria-pressed]")) option.setAttribute("aria-pressed", "false");
    this.status(card, "");
  }

  // A choice was made by a click: send it, after the time in which it can be taken back.
  choose(card, option) {
    if (isShut(card)) return;
    this.mark(card, option);
    this.submit(card);
  }

  submit(card, { atOnce = false } = {}) {
    if (card.dataset.mode === "undo") return this.sendNow(card);
    if (isShut(card)) return;
    const parts = readFields(card);
    const questions = [...card.querySelectorAll(".question")];
    const missing = parts.findIndex((part, index) => isMissing(questions[index], part));
    if (missing >= 0) return this.point(card, missing, parts.length);
    this.close(card);
    this.sendAfter(card, atOnce ? 0 : pageData.undo[card.dataset.urgency], () => this.send(card));
  }

  sendAfter(card, wait, send) {
    card.send = send;
    if (wait > 0) this.wait(card, wait);
    else card.send();
  }

  point(card, missing, count) {
    const question = card.querySelectorAll(".question")[missing];
    const alone = "choose" in question.dataset ? "Choose an option first" : "Choose an option or write something first";
    const text = count > 1 ? `Question ${missing + 1} has no answer yet` : alone;
    this.status(card, text, "bad");
    announce(text);
    (question.querySelector("[data-option]") ?? question.querySelector("[data-text]")).focus();
  }

  wait(card, wait) {
    card.dataset.mode = "undo";
    this.lock(card, true);
    this.status(card, "");
    const panel = this.panel(card, '<p><strong data-wait></strong></p><div class="actions"><button type="button" data-do="undo">Take it back <kbd aria-hidden="true">u</kbd></button><button type="button" class="primary" data-do="send-now">Send now <kbd aria-hidden="true">↵</kbd></button></div>');
    const end = Date.now() + wait;
    const step = () => {
      const left = end - Date.now();
      if (left < -TOO_LATE_MS) return this.takeBack(card, "Not sent: this page was asleep. Choose again.");
      if (left <= 0) return this.sendNow(card);
      panel.querySelector("[data-wait]").textContent = `Sending in ${Math.ceil(left / 1000)} s…`;
      card.timer = setTimeout(step, Math.min(left, 200));
    };
    step();
    announce("It is sent in a few seconds. u takes it back.");
    card.focus({ preventScroll: true });
  }

  sendNow(card) {
    clearTimeout(card.timer);
    delete card.dataset.mode;
    this.close(card);
    card.send();
  }

  // The page goes: what waits to be sent is sent, since nobody can take it back any more.
  leave() {
    for (const card of document.querySelectorAll('.card[data-mode="undo"]')) this.sendNow(card);
  }

  undo(card) {
    if (card.dataset.mode === "undo") {
      this.takeBack(card, "Taken back. Nothing was sent.");
      card.focus({ preventScroll: true });
    } else if (!isShut(card)) {
      this.unmark(card);
    }
  }

  takeBack(card, text) {
    clearTimeout(card.timer);
    delete card.dataset.mode;
    this.lock(card, false);
    this.close(card);
    this.unmark(card);
    this.status(card, text);
    announce(text);
    this.cards.catchUp(card);
  }

  send(card) {
    const answers = readFields(card).map((part) => ({ options: part.options, text: part.text.trim() || null }));
    saveUnsentText(card);
    card.sent = true;
    return this.post(card, "answer", { answers });
  }

  async post(card, verb, body) {
    const key = card.dataset.key;
    const [group, id] = [key.slice(0, key.indexOf("/")), key.slice(key.indexOf("/") + 1)];
    card.dataset.mode = "sending";
    this.lock(card, true);
    this.status(card, "Sending…", "busy");
    const sent = { group, ...body };
    let reply;
    try {
      reply = await postToHost(`/api/questions/${encodeURIComponent(id)}/${verb}`, sent, {
        // It outlives the page, unless it has more than browsers let outlive one.
        keepalive: JSON.stringify(sent).length < MOST_KEPT_ALIVE,
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
    } catch {
      return this.failed(card, "Not sent: the host does not answer. What you chose is kept; try again.");
    }
    const told = await reply.json().catch(() => ({}));
    delete card.dataset.mode;
    if (reply.ok) {
      forgetUnsentText(key);
      await this.cards.fetch([key]);
    } else if (reply.status === 409 && told.outcome) {
      await this.cards.fetch([key]);
      this.late(card, told);
    } else if (reply.status === 401) {
      this.failed(card, "Not sent: this browser is signed out. Sign in again with: pynchy inbox --open");
    } else {
      this.failed(card, `Not taken: ${told.error ?? `the host said ${reply.status}`}`);
    }
  }

  late(card, told) {
    card.sent = false;
    card.note = document.createElement("p");
    card.note.className = "late";
    card.note.textContent = `Not yours: somebody was first. It was ${told.summary}.`;
    card.querySelector(".result")?.prepend(card.note);
    announce(card.note.textContent);
    this.cards.ended.keepUnsent(card);
  }

  failed(card, text) {
    delete card.dataset.mode;
    card.sent = false;
    this.lock(card, false);
    this.status(card, text, "bad");
    announce(text);
    this.cards.catchUp(card);
  }

  askReason(card) {
    if (isShut(card)) return;
    const panel = this.panel(card, '<label><span>Why? The agent reads it (optional)</span><input data-reason maxlength="2000"></label><div class="actions"><button type="button" class="danger" data-do="decline-now">Decline <kbd aria-hidden="true">↵</kbd></button><button type="button" class="quiet" data-do="close">Keep it open <kbd aria-hidden="true">Esc</kbd></button></div>');
    this.expand(card, "decline");
    const field = panel.querySelector("input");
    field.value = card.reason ?? "";
    field.focus({ preventScroll: true });
    panel.scrollIntoView({ block: "nearest" });
    // A second click or Enter meant for the first button declines nothing.
    ignoreInputBriefly(card);
  }

  decline(card) {
    card.reason = card.querySelector("[data-reason]")?.value.trim() || null;
    this.close(card);
    this.sendAfter(card, pageData.undo[card.dataset.urgency], () => {
      card.sent = true;
      return this.post(card, "decline", { reason: card.reason });
    });
  }

  askSnooze(card) {
    if (isShut(card)) return;
    const choices = snoozeChoices(card);
    const panel = this.panel(card, '<p class="choices-head">Hide it for</p><div class="actions"></div>');
    this.expand(card, "snooze");
    const row = panel.querySelector(".actions");
    for (const choice of choices) {
      const button = document.createElement("button");
      button.type = "button";
      button.dataset.do = "snooze-now";
      button.dataset.until = String(choice.until);
      button.textContent = choice.cutShort ? `${formatDuration((choice.until - hostNow()) / 1000)} (it ends soon)` : choice.text;
      row.append(button);
      if (choice.cutShort) break;
    }
    if (!choices.length) panel.querySelector("p").textContent = "It ends too soon to be hidden.";
    row.insertAdjacentHTML("beforeend", '<button type="button" class="quiet" data-do="close">Cancel <kbd aria-hidden="true">Esc</kbd></button>');
    row.querySelector("button").focus({ preventScroll: true });
    panel.scrollIntoView({ block: "nearest" });
  }

  panel(card, html) {
    const panel = card.querySelector(".panel");
    panel.innerHTML = html;
    panel.hidden = false;
    return panel;
  }

  expand(card, what) {
    for (const button of card.querySelectorAll("[aria-expanded][data-do=decline], [aria-expanded][data-do=snooze]")) {
      button.setAttribute("aria-expanded", String(button.dataset.do === what));
    }
  }

  close(card) {
    const panel = card.querySelector(".panel");
    if (!panel || panel.hidden) return false;
    const focused = panel.contains(document.activeElement);
    panel.hidden = true;
    panel.replaceChildren();
    this.expand(card, null);
    if (focused) card.focus({ preventScroll: true });
    return true;
  }

  status(card, text, kind = "") {
    const status = card.querySelector(".status");
    if (!status) return;
    status.textContent = text;
    status.hidden = !text;
    status.className = `status ${kind}`;
  }

  lock(card, locked) {
    // What is disabled loses the focus; the card keeps it.
    if (locked && card.contains(document.activeElement)) card.focus({ preventScroll: true });
    card.classList.toggle("locked", locked);
    card.setAttribute("aria-busy", String(locked));
    for (const control of card.querySelectorAll("form > fieldset, form > .actions button")) control.disabled = locked;
  }
}
