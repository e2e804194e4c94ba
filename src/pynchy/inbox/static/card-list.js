// The list of cards: where a card goes and how it changes, without moving what somebody looks at.

import { cardFromHtml, fillFields, growTextFields, readFields, restoreFocus, saveFocus } from "./card-element.js";
import { keysWithinLimit, LIMIT_STEP, surplusCards } from "./card-limit.js";
import { formatDuration, updateTimes } from "./clock.js";
import { EndedCards } from "./ended-card.js";
import { announce, isTextField, showWaitingCount } from "./every-page.js";
import { fetchFromHost } from "./host-requests.js";
import { ignoreInputBriefly, ignoreTypingUntilPause } from "./input-guard.js";
import { closeNotification, notifyOfCard, notifyOfQuestions } from "./notifications.js";
import { hostNow } from "./page-data.js";
import { CardSearch } from "./search.js";
import { endSnooze, forgetSnooze, forgetSnoozesExcept, isSnoozed, returnedFromSnoozeAt, snoozedUntil, startSnooze } from "./snooze.js";
import { StableList } from "./stable-list.js";
import { forgetOldUnsentText, restoreUnsentText } from "./unsent-text.js";

const AT_ONCE = 50;
const REFILL_MS = 300;

export class CardList extends StableList {
  constructor(list) {
    super(list);
    this.only = list.dataset.only ?? null;
    this.asleep = document.querySelector("#snoozed .list");
    this.search = document.querySelector("#main [data-search]");
    this.pill = document.querySelector("[data-do=up]");
    // Which questions are open; not known before the host has said so.
    this.open = null;
    this.revisions = new Map(JSON.parse(list.dataset.revisions));
    this.unseen = new Set();
    this.most = LIMIT_STEP;
    this.more = document.querySelector("[data-do=more]");
    this.ended = new EndedCards(this);
    this.finder = new CardSearch(
      (keys) => this.fetchAll(keys.filter((key) => !this.find(key))),
      () => this.filter(true),
    );
    for (const card of this.cards()) this.prepare(card);
    this.search?.addEventListener("input", () => this.filter());
    this.pill?.addEventListener("click", () => this.goUp());
    this.more?.addEventListener("click", () => this.showMore());
    addEventListener("scroll", () => this.scrolled(), { passive: true });
    setInterval(() => this.wakeUp(), 1000);
    forgetOldUnsentText();
    this.arrange();
  }

  shown() {
    return this.cards().filter((card) => !card.hidden);
  }

  waiting() {
    return this.shown().filter((card) => !card.classList.contains("over"));
  }

  // The open questions that are snoozed.
  hidden() {
    return [...(this.asleep?.querySelectorAll(".card:not(.over)") ?? [])];
  }

  find(key) {
    return document.getElementById(`q-${key}`);
  }

  // The host says what is open: get what is missing, and see what became of what is not there.
  async sync({ open }) {
    // What came while the line was broken is as new as what comes over it.
    const known = this.open ?? new Map(open);
    const fresh = open.map(([key]) => key).filter((key) => !known.has(key));
    this.open = new Map(open.map(([key, order]) => [key, order]));
    forgetSnoozesExcept(this.open);
    const near = this.near();
    const stale = open.filter(([key, , revision]) => this.revisions.get(key) !== revision).map(([key]) => key);
    const gone = [...this.cards(), ...this.hidden()].filter((card) => !card.classList.contains("over") && !this.open.has(card.dataset.key));
    this.count();
    await this.fetchAll([
      ...stale.filter((key) => near.has(key) || this.find(key)),
      ...gone.map((card) => card.dataset.key),
    ]);
    this.list.dataset.more = "0";
    for (const key of fresh) this.greet(this.find(key));
    notifyOfQuestions(fresh.filter((key) => !this.find(key)));
    this.count();
  }

  // Which questions have a card, or are to have one.
  near() {
    if (this.only) return new Set([this.only]);
    return keysWithinLimit(this.open ?? new Map(), this.most);
  }

  async fetchAll(keys) {
    for (let start = 0; start < keys.length; start += AT_ONCE) {
      await this.fetch(keys.slice(start, start + AT_ONCE));
    }
  }

  // There is room again: show what comes next.
  async refill() {
    await this.fetchAll([...this.near()].filter((key) => this.open.has(key) && !this.find(key)));
    this.count();
  }

  refillLater() {
    clearTimeout(this.refilling);
    this.refilling = setTimeout(() => this.refill(), REFILL_MS);
  }

  hasMore() {
    return Boolean(this.more) && !this.more.hidden;
  }

  // However often it is asked for meanwhile, it is one step.
  showMore() {
    this.growing ??= this.showStep().finally(() => {
      this.growing = null;
    });
    return this.growing;
  }

  async showStep() {
    this.most += LIMIT_STEP;
    const before = this.shown().at(-1);
    await this.refill();
    if (document.activeElement === this.more || document.activeElement === document.body) {
      this.focus(before?.nextElementSibling ?? null);
    }
  }

  // Take away what is too much, far below and untouched.
  trim() {
    if (this.search?.value.trim()) return;
    for (const card of surplusCards(this.cards(), this.near(), this.most)) {
      this.revisions.delete(card.dataset.key);
      card.remove();
    }
  }

  async fetch(keys) {
    const query = new URLSearchParams(keys.map((key) => ["key", key]));
    const before = new Map(keys.map((key) => [key, this.revisions.get(key)]));
    const reply = await fetchFromHost(`/inbox/cards?${query}`).catch(() => null);
    if (!reply?.ok) return;
    const found = await reply.json();
    this.still(() => {
      for (const card of found) {
        // The stream was faster: it has told of an end, or of a change, since this was asked for.
        const outrun = !this.open?.has(card.key) || this.revisions.get(card.key) !== before.get(card.key);
        if (card.over) this.settle(card);
        else if (!outrun) this.put(card);
      }
    });
    const known = new Set(found.map((card) => card.key));
    for (const key of keys) if (!known.has(key)) this.drop(this.find(key));
  }

  // Nothing came of sending it: show what has changed meanwhile.
  async catchUp(card) {
    if (!card.outdated) return;
    card.outdated = false;
    await this.fetch([card.dataset.key]);
  }

  take(message) {
    const fresh = !this.open.has(message.key);
    this.open.set(message.key, message.order);
    if (this.find(message.key) || this.near().has(message.key)) {
      this.still(() => this.put(message));
      this.trim();
    }
    if (fresh) this.greet(this.find(message.key) ?? cardFromHtml(message.html));
    this.count();
  }

  end(message) {
    this.open.delete(message.key);
    forgetSnooze(message.key);
    closeNotification(message.key);
    if (this.find(message.key)) this.still(() => this.settle(message));
    else this.refillLater();
    this.count();
  }

  greet(card) {
    if (!card) return;
    if (this.only && card.dataset.key !== this.only) return notifyOfCard(card);
    announce(`New question from ${card.dataset.agent}: ${card.dataset.brief}`);
    notifyOfCard(card);
    if (card.isConnected && card.getBoundingClientRect().top < 50) {
      this.unseen.add(card);
      this.showPill();
    }
  }

  put(message) {
    if (this.revisions.get(message.key) === message.revision && this.find(message.key)) return;
    const old = this.find(message.key);
    // It is being sent: it is looked at again if that comes to nothing.
    if (old?.dataset.mode) {
      old.outdated = true;
      return;
    }
    this.revisions.set(message.key, message.revision);
    const made = cardFromHtml(message.html);
    if (old) return this.renew(old, made);
    this.prepare(made);
    ignoreInputBriefly(made);
    made.classList.add("fresh");
    this.place(made);
  }

  prepare(card) {
    updateTimes(card);
    if (card.classList.contains("over")) return;
    restoreUnsentText(card);
    growTextFields(card);
  }

  // The same question, changed a little: keep what was typed, marked and focused.
  renew(card, made) {
    const focus = saveFocus(card);
    const kept = readFields(card);
    const asleep = card.classList.contains("asleep");
    for (const { name, value } of made.attributes) card.setAttribute(name, value);
    card.classList.toggle("asleep", asleep);
    card.replaceChildren(...made.childNodes);
    fillFields(card, kept);
    updateTimes(card);
    growTextFields(card);
    if (!this.asleep?.contains(card)) this.place(card);
    restoreFocus(card, focus);
  }

  place(card) {
    if (isSnoozed(card.dataset.key) && this.asleep && !this.only) {
      this.asleep.append(card);
      card.classList.add("asleep");
      this.showAsleep();
      return;
    }
    card.classList.remove("asleep");
    const back = returnedFromSnoozeAt(card.dataset.key);
    if (back !== null) card.dataset.top = String(Math.round(back));
    const next = this.cards().find((other) => other !== card && rank(other) > rank(card));
    if (card.parentNode !== this.list || card.nextElementSibling !== (next ?? null)) {
      // Moving a card would take the focus away from inside of it.
      const inUse = card.parentNode === this.list && card.contains(document.activeElement);
      if (!inUse) this.list.insertBefore(card, next ?? null);
    }
    this.filterOne(card);
  }

  arrange() {
    for (const card of this.cards()) {
      if (snoozedUntil(card.dataset.key) !== null) this.place(card);
    }
  }

  settle(message) {
    this.revisions.delete(message.key);
    const card = this.find(message.key);
    if (card) this.ended.show(card, message);
  }

  drop(card) {
    if (!card || this.only) return;
    if (card.contains(document.activeElement) && isTextField(document.activeElement)) ignoreTypingUntilPause();
    this.still(() => {
      this.revisions.delete(card.dataset.key);
      card.remove();
    });
    this.refillLater();
    this.count();
  }

  scrolled() {
    if (scrollY < 10) {
      document.body.style.minHeight = "";
      this.unseen.clear();
      this.showPill();
    }
  }

  goUp() {
    scrollTo({ top: 0 });
    this.unseen.clear();
    this.showPill();
    this.focus(this.waiting()[0]);
  }

  showPill() {
    if (!this.pill) return;
    for (const card of this.unseen) if (!card.isConnected || card.classList.contains("over")) this.unseen.delete(card);
    this.pill.hidden = this.unseen.size === 0;
    this.pill.textContent = `↑ ${this.unseen.size} new above`;
  }

  focus(card) {
    if (!card) return;
    card.focus({ preventScroll: true });
    const { top, bottom } = card.getBoundingClientRect();
    if (top < 70 || bottom > innerHeight - 70) {
      scrollTo({ top: scrollY + top - 76, behavior: "instant" });
    }
  }

  wakeUp() {
    for (const card of this.hidden()) {
      const { key } = card.dataset;
      if (this.open?.has(key) && !isSnoozed(key)) this.rouse(card);
    }
  }

  // Back from a snooze: on top of all.
  rouse(card) {
    endSnooze(card.dataset.key);
    this.still(() => {
      ignoreInputBriefly(card);
      card.classList.add("fresh");
      this.place(card);
    });
    this.showAsleep();
    this.greet(card);
    this.count();
  }

  snooze(card, until) {
    startSnooze(card.dataset.key, until);
    const next = card.nextElementSibling ?? card.previousElementSibling;
    card.blur();
    document.activeElement?.blur?.();
    this.place(card);
    this.refillLater();
    announce(`Snoozed for ${formatDuration((until - hostNow()) / 1000)}`);
    this.count();
    this.focus(next);
  }

  showAsleep() {
    const box = document.getElementById("snoozed");
    if (!box) return;
    const count = this.asleep.children.length;
    box.hidden = count === 0;
    box.querySelector("[data-snoozed]").textContent = String(count);
  }

  filter(told = false) {
    const text = this.search.value.trim();
    if (!told) this.finder.look(text, this.hasMore() || this.cards().length < (this.open?.size ?? 0));
    for (const card of this.cards()) this.filterOne(card);
    if (!text) this.trim();
    this.count();
  }

  filterOne(card) {
    const words = (this.search?.value ?? "").toLowerCase().split(/\s+/).filter(Boolean);
    const text = words.length ? `${card.textContent} ${card.dataset.brief}`.toLowerCase() : "";
    const fits = words.every((word) => text.includes(word)) || this.finder.found.has(card.dataset.key);
    card.hidden = !fits && !card.contains(document.activeElement);
  }

  count() {
    showWaitingCount([...(this.open?.keys() ?? [])].filter((key) => !isSnoozed(key)).length);
    const more = this.list.dataset.more !== "0";
    const cards = this.cards();
    const empty = document.querySelector("[data-empty]");
    if (empty) empty.hidden = cards.length > 0 || more || (this.asleep?.children.length ?? 0) > 0;
    this.finder.tell(cards);
    this.showRest();
    this.showAsleep();
    this.showPill();
  }

  // How many wait without a card here.
  showRest() {
    if (!this.more) return;
    const rest = [...(this.open?.keys() ?? [])].filter((key) => !this.find(key) && !isSnoozed(key)).length;
    this.more.hidden = rest === 0 || this.list.dataset.more !== "0" || Boolean(this.search?.value.trim());
    this.more.textContent = `Show ${Math.min(rest, LIMIT_STEP)} more of ${rest} below`;
  }
}

function rank(card) {
  // What came back from a snooze last is first of all.
  return card.dataset.top ? `!${1e15 - Number(card.dataset.top)}` : card.dataset.order;
}
