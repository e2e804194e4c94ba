// The list of cards: adds, updates, sorts, filters, snoozes and removes them.

import { cardFromHtml, fillFields, growTextFields, readFields, restoreFocus, saveFocus, unfoldedQuestions, unfoldQuestion } from "./card-element.js";
import { fairPlaces, keysWithinLimit, LIMIT_STEP, sortKey, surplusCards } from "./card-limit.js";
import { CardSearch } from "./card-search.js";
import { formatDuration, updateTimes } from "./clock.js";
import { EndedCards } from "./ended-cards.js";
import { announce, isTextField, showWaitingCount } from "./every-page.js";
import { fetchFromHost } from "./host-requests.js";
import { ignoreInputBriefly, ignoreTypingUntilPause } from "./input-guard.js";
import { closeNotification, notifyOfCard, notifyOfQuestions } from "./notifications.js";
import { hostNow } from "./page-data.js";
import { endSnooze, forgetSnooze, forgetSnoozesExcept, isSnoozed, returnedFromSnoozeAt, snoozedUntil, startSnooze } from "./snooze.js";
import { StableList } from "./stable-list.js";
import { forgetOldUnsentText, restoreUnsentText } from "./unsent-text.js";

const CARDS_PER_REQUEST = 50;
const REFILL_MS = 300;

export class CardList extends StableList {
  constructor(list) {
    super(list);
    this.onlyKey = list.dataset.only ?? null;
    this.snoozedList = document.querySelector("#snoozed .list");
    this.searchField = document.querySelector("#main [data-search]");
    this.newAboveButton = document.querySelector("[data-do=up]");
    // The order of each open question by its key; null until the host has sent them.
    this.openQuestions = null;
    this.revisions = new Map(JSON.parse(list.dataset.revisions));
    this.unseenCards = new Set();
    this.limit = LIMIT_STEP;
    this.moreButton = document.querySelector("[data-do=more]");
    this.endedCards = new EndedCards(this);
    this.cardSearch = new CardSearch(
      (keys) => this.fetchInBatches(keys.filter((key) => !this.findCard(key))),
      () => this.filterCards(true),
    );
    const places = fairPlaces(this.cards().map((card) => [card.dataset.key, card.dataset.order]));
    for (const card of this.cards()) {
      card.dataset.place = places.get(card.dataset.key);
      this.prepareCard(card);
    }
    this.searchField?.addEventListener("input", () => this.filterCards());
    this.newAboveButton?.addEventListener("click", () => this.scrollToTop());
    this.moreButton?.addEventListener("click", () => this.showMore());
    addEventListener("scroll", () => this.onScroll(), { passive: true });
    setInterval(() => this.wakeDueCards(), 1000);
    forgetOldUnsentText();
    this.placeSnoozedCards();
  }

  visibleCards() {
    return this.cards().filter((card) => !card.hidden);
  }

  waitingCards() {
    return this.visibleCards().filter((card) => !card.classList.contains("over"));
  }

  // The open questions that are snoozed.
  snoozedCards() {
    return [...(this.snoozedList?.querySelectorAll(".card:not(.over)") ?? [])];
  }

  findCard(key) {
    return document.getElementById(`q-${key}`);
  }

  // The host says what is open: get what is missing, and what became of the cards that are not in it.
  async onSync({ open }) {
    // What was asked while the connection was lost is new, too.
    const known = this.openQuestions ?? new Map(open);
    const newKeys = open.map(([key]) => key).filter((key) => !known.has(key));
    this.openQuestions = new Map(open.map(([key, order]) => [key, order]));
    this.places = null;
    forgetSnoozesExcept(this.openQuestions);
    const wanted = this.wantedKeys();
    const staleKeys = open.filter(([key, , revision]) => this.revisions.get(key) !== revision).map(([key]) => key);
    const goneCards = [...this.cards(), ...this.snoozedCards()].filter((card) => !card.classList.contains("over") && !this.openQuestions.has(card.dataset.key));
    this.updateCounts();
    await this.fetchInBatches([
      ...staleKeys.filter((key) => wanted.has(key) || this.findCard(key)),
      ...goneCards.map((card) => card.dataset.key),
    ]);
    this.list.dataset.more = "0";
    for (const key of newKeys) this.announceNewCard(this.findCard(key));
    notifyOfQuestions(newKeys.filter((key) => !this.findCard(key)));
    this.updateCounts();
  }

  // Which questions have a card, or are to have one.
  wantedKeys() {
    if (this.onlyKey) return new Set([this.onlyKey]);
    return keysWithinLimit(this.currentPlaces(), this.limit);
  }

  // Where each open question belongs now. A card that is there stays where it was put.
  currentPlaces() {
    this.places ??= fairPlaces(this.openQuestions ?? new Map());
    return this.places;
  }

  async fetchInBatches(keys) {
    for (let start = 0; start < keys.length; start += CARDS_PER_REQUEST) {
      await this.fetchCards(keys.slice(start, start + CARDS_PER_REQUEST));
    }
  }

  // There is room again: show what comes next.
  async refill() {
    await this.fetchInBatches([...this.wantedKeys()].filter((key) => this.openQuestions.has(key) && !this.findCard(key)));
    this.updateCounts();
  }

  scheduleRefill() {
    clearTimeout(this.refillTimer);
    this.refillTimer = setTimeout(() => this.refill(), REFILL_MS);
  }

  hasMore() {
    return Boolean(this.moreButton) && !this.moreButton.hidden;
  }

  // However often it is asked for meanwhile, it is one step.
  showMore() {
    this.showingMore ??= this.showNextStep().finally(() => {
      this.showingMore = null;
    });
    return this.showingMore;
  }

  async showNextStep() {
    this.limit += LIMIT_STEP;
    const lastCard = this.visibleCards().at(-1);
    await this.refill();
    if (document.activeElement === this.moreButton || document.activeElement === document.body) {
      this.focusCard(lastCard?.nextElementSibling ?? null);
    }
  }

  // Take away what is too much, far below and untouched.
  removeSurplusCards() {
    if (this.searchField?.value.trim()) return;
    for (const card of surplusCards(this.cards(), this.wantedKeys(), this.limit)) {
      this.revisions.delete(card.dataset.key);
      card.remove();
    }
  }

  async fetchCards(keys) {
    const query = new URLSearchParams(keys.map((key) => ["key", key]));
    if (this.onlyKey) query.set("whole", "");
    const revisionsBefore = new Map(keys.map((key) => [key, this.revisions.get(key)]));
    const reply = await fetchFromHost(`/inbox/cards?${query}`).catch(() => null);
    if (!reply?.ok) return;
    const fetched = await reply.json();
    this.withCardsInPlace(() => {
      for (const card of fetched) {
        // The stream was faster: it has brought an end or a change since this request.
        const overtaken = !this.openQuestions?.has(card.key) || this.revisions.get(card.key) !== revisionsBefore.get(card.key);
        if (card.over) this.showEnded(card);
        else if (!overtaken) this.addOrUpdateCard(card);
      }
    });
    const known = new Set(fetched.map((card) => card.key));
    for (const key of keys) if (!known.has(key)) this.removeCard(this.findCard(key));
  }

  // It was not sent after all: show what has changed meanwhile.
  async refetchIfOutdated(card) {
    if (!card.outdated) return;
    card.outdated = false;
    await this.fetchCards([card.dataset.key]);
  }

  onCard(message) {
    const isNew = !this.openQuestions.has(message.key);
    this.openQuestions.set(message.key, message.order);
    this.places = null;
    if (this.onlyKey === message.key) this.fetchCards([message.key]);
    else if (this.findCard(message.key) || this.wantedKeys().has(message.key)) {
      this.withCardsInPlace(() => this.addOrUpdateCard(message));
      this.removeSurplusCards();
    }
    if (isNew) this.announceNewCard(this.findCard(message.key) ?? cardFromHtml(message.html));
    this.updateCounts();
  }

  onEnded(message) {
    this.openQuestions.delete(message.key);
    this.places = null;
    forgetSnooze(message.key);
    closeNotification(message.key);
    if (this.onlyKey === message.key) this.fetchCards([message.key]);
    else if (this.findCard(message.key)) this.withCardsInPlace(() => this.showEnded(message));
    else this.scheduleRefill();
    this.updateCounts();
  }

  announceNewCard(card) {
    if (!card) return;
    if (this.onlyKey && card.dataset.key !== this.onlyKey) return notifyOfCard(card);
    announce(`New question from ${card.dataset.who}: ${card.dataset.brief}`);
    notifyOfCard(card);
    if (card.isConnected && card.getBoundingClientRect().top < 50) {
      this.unseenCards.add(card);
      this.updateNewAboveButton();
    }
  }

  addOrUpdateCard(message) {
    if (this.revisions.get(message.key) === message.revision && this.findCard(message.key)) return;
    const existing = this.findCard(message.key);
    // It is being sent; if that fails, it is fetched again.
    if (existing?.dataset.mode) {
      existing.outdated = true;
      return;
    }
    this.revisions.set(message.key, message.revision);
    const newCard = cardFromHtml(message.html);
    if (existing) return this.updateCard(existing, newCard);
    this.prepareCard(newCard);
    ignoreInputBriefly(newCard);
    newCard.classList.add("fresh");
    this.placeCard(newCard);
  }

  prepareCard(card) {
    updateTimes(card);
    if (card.classList.contains("over")) return;
    restoreUnsentText(card);
    growTextFields(card);
  }

  // The same question, changed a little: keep what was typed, marked and focused.
  updateCard(card, newCard) {
    const focus = saveFocus(card);
    const fields = readFields(card);
    const unfolded = unfoldedQuestions(card);
    const wasSnoozed = card.classList.contains("asleep");
    if (card.dataset.order !== newCard.dataset.order) delete card.dataset.place;
    for (const { name, value } of newCard.attributes) card.setAttribute(name, value);
    card.removeAttribute("aria-busy");
    card.classList.toggle("asleep", wasSnoozed);
    card.replaceChildren(...newCard.childNodes);
    fillFields(card, fields);
    for (const number of unfolded) unfoldQuestion(card, number);
    updateTimes(card);
    growTextFields(card);
    if (!this.snoozedList?.contains(card)) this.placeCard(card);
    restoreFocus(card, focus);
  }

  placeCard(card) {
    if (isSnoozed(card.dataset.key) && this.snoozedList && !this.onlyKey) {
      this.snoozedList.append(card);
      card.classList.add("asleep");
      this.updateSnoozedList();
      return;
    }
    card.classList.remove("asleep");
    const returnedAt = returnedFromSnoozeAt(card.dataset.key);
    if (returnedAt !== null) card.dataset.top = String(Math.round(returnedAt));
    card.dataset.place ??= this.currentPlaces().get(card.dataset.key) ?? card.dataset.order;
    const next = this.cards().find((other) => other !== card && sortKey(other) > sortKey(card));
    if (card.parentNode !== this.list || card.nextElementSibling !== (next ?? null)) {
      // Moving a card would take the focus away from inside of it.
      const inUse = card.parentNode === this.list && card.contains(document.activeElement);
      if (!inUse) this.list.insertBefore(card, next ?? null);
    }
    this.filterCard(card);
  }

  placeSnoozedCards() {
    for (const card of this.cards()) {
      if (snoozedUntil(card.dataset.key) !== null) this.placeCard(card);
    }
  }

  showEnded(message) {
    this.revisions.delete(message.key);
    const card = this.findCard(message.key);
    if (card) this.endedCards.show(card, message);
  }

  removeCard(card) {
    if (!card || this.onlyKey) return;
    if (card.contains(document.activeElement) && isTextField(document.activeElement)) ignoreTypingUntilPause();
    this.withCardsInPlace(() => {
      this.revisions.delete(card.dataset.key);
      card.remove();
    });
    this.scheduleRefill();
    this.updateCounts();
  }

  onScroll() {
    if (scrollY < 10) {
      document.body.style.minHeight = "";
      this.unseenCards.clear();
      this.updateNewAboveButton();
    }
  }

  scrollToTop() {
    scrollTo({ top: 0 });
    this.unseenCards.clear();
    this.updateNewAboveButton();
    this.focusCard(this.waitingCards()[0]);
  }

  updateNewAboveButton() {
    if (!this.newAboveButton) return;
    for (const card of this.unseenCards) if (!card.isConnected || card.classList.contains("over")) this.unseenCards.delete(card);
    this.newAboveButton.hidden = this.unseenCards.size === 0;
    this.newAboveButton.textContent = `↑ ${this.unseenCards.size} new above`;
  }

  focusCard(card) {
    if (!card) return;
    card.focus({ preventScroll: true });
    const { top, bottom } = card.getBoundingClientRect();
    if (top < 70 || bottom > innerHeight - 70) {
      scrollTo({ top: scrollY + top - 76, behavior: "instant" });
    }
  }

  wakeDueCards() {
    for (const card of this.snoozedCards()) {
      const { key } = card.dataset;
      if (this.openQuestions?.has(key) && !isSnoozed(key)) this.wakeCard(card);
    }
  }

  // Back from a snooze: on top of all.
  wakeCard(card) {
    endSnooze(card.dataset.key);
    this.withCardsInPlace(() => {
      ignoreInputBriefly(card);
      card.classList.add("fresh");
      this.placeCard(card);
    });
    this.updateSnoozedList();
    this.announceNewCard(card);
    this.updateCounts();
  }

  snoozeCard(card, until) {
    startSnooze(card.dataset.key, until);
    const next = card.nextElementSibling ?? card.previousElementSibling;
    card.blur();
    document.activeElement?.blur?.();
    this.placeCard(card);
    this.scheduleRefill();
    announce(`Snoozed for ${formatDuration((until - hostNow()) / 1000)}`);
    this.updateCounts();
    this.focusCard(next);
  }

  updateSnoozedList() {
    const box = document.getElementById("snoozed");
    if (!box) return;
    const count = this.snoozedList.children.length;
    box.hidden = count === 0;
    box.querySelector("[data-snoozed]").textContent = String(count);
  }

  filterCards(hostAnswered = false) {
    const text = this.searchField.value.trim();
    if (!hostAnswered) this.cardSearch.setText(text, this.hasMore() || this.cards().length < (this.openQuestions?.size ?? 0) || this.cards().some((card) => "excerpt" in card.dataset));
    for (const card of this.cards()) this.filterCard(card);
    if (!text) this.removeSurplusCards();
    this.updateCounts();
  }

  filterCard(card) {
    const words = (this.searchField?.value ?? "").toLowerCase().split(/\s+/).filter(Boolean);
    const text = words.length ? `${card.textContent} ${card.dataset.brief}`.toLowerCase() : "";
    const fits = words.every((word) => text.includes(word)) || this.cardSearch.foundKeys.has(card.dataset.key);
    card.hidden = !fits && !card.contains(document.activeElement);
  }

  updateCounts() {
    showWaitingCount([...(this.openQuestions?.keys() ?? [])].filter((key) => !isSnoozed(key)).length);
    const moreToCome = this.list.dataset.more !== "0";
    const cards = this.cards();
    const empty = document.querySelector("[data-empty]");
    if (empty) empty.hidden = cards.length > 0 || moreToCome || (this.snoozedList?.children.length ?? 0) > 0;
    this.cardSearch.showNote(cards);
    this.updateMoreButton();
    this.updateSnoozedList();
    this.updateNewAboveButton();
  }

  updateMoreButton() {
    if (!this.moreButton) return;
    const remaining = [...(this.openQuestions?.keys() ?? [])].filter((key) => !this.findCard(key) && !isSnoozed(key)).length;
    this.moreButton.hidden = remaining === 0 || this.list.dataset.more !== "0" || Boolean(this.searchField?.value.trim());
    this.moreButton.textContent = `Show ${Math.min(remaining, LIMIT_STEP)} more of ${remaining} below`;
  }
}
