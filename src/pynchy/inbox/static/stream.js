// The live connection: what it last heard and when, and the way back when it is lost.

import { announceCount, now, setNow } from "./facts.js";
import { duration } from "./clock.js";
import { forgetAll } from "./unsent.js";

// The host speaks every ten seconds; this long without a word is a broken line.
const SILENCE_MS = 25000;
const RETRY_MS = [500, 1000, 2000, 4000, 8000];

export class Stream {
  constructor(handlers) {
    this.handlers = handlers;
    this.lastHeard = now();
    this.state = "connecting";
    this.failures = 0;
    this.connect();
    setInterval(() => this.look(), 1000);
    addEventListener("online", () => this.connect());
    addEventListener("pageshow", (event) => event.persisted && this.connect());
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden && this.state !== "live") this.connect();
    });
  }

  connect() {
    clearTimeout(this.timer);
    this.source?.close();
    const source = new EventSource("/inbox/stream");
    this.source = source;
    source.addEventListener("out", () => this.lost(source));
    for (const kind of ["sync", "card", "over", "ping"]) {
      source.addEventListener(kind, (event) => this.hear(kind, JSON.parse(event.data)));
    }
    source.addEventListener("error", () => this.lost(source));
  }

  hear(kind, body) {
    if (this.isOut) return location.reload();
    if (body.now) setNow(body.now);
    this.lastHeard = now();
    this.failures = 0;
    this.show("live");
    this.handlers[kind]?.(body);
  }

  async lost(source) {
    if (source !== this.source) return;
    source.close();
    this.show("lost");
    const wait = RETRY_MS[Math.min(this.failures, RETRY_MS.length - 1)];
    this.failures += 1;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.connect(), wait);
    if (await signedOut()) this.leave();
  }

  // Whoever is signed out sees nothing any more, and leaves nothing behind.
  leave() {
    this.show("out");
    this.isOut = true;
    forgetAll();
    announceCount(0);
    const text = document.createElement("p");
    text.className = "empty-search";
    text.textContent = "You are signed out. On the machine where pynchy runs, pynchy inbox --open signs you in again.";
    document.getElementById("main").replaceChildren(text);
  }

  look() {
    if (this.state === "live" && now() - this.lastHeard > SILENCE_MS) {
      this.show("lost");
      this.connect();
    }
    this.show(this.state);
  }

  show(state) {
    this.state = state;
    const texts = {
      connecting: "connecting…",
      live: "live",
      lost: `reconnecting, last seen ${duration((now() - this.lastHeard) / 1000)} ago`,
      out: "signed out: pynchy inbox --open",
    };
    for (const element of document.querySelectorAll("[data-link]")) {
      element.dataset.link = state;
      const place = element.querySelector("[data-link-text]");
      if (place.textContent !== texts[state]) place.textContent = texts[state];
    }
  }
}

async function signedOut() {
  try {
    const reply = await fetch("/inbox/cards", { cache: "no-store" });
    return reply.status === 401;
  } catch {
    return false;
  }
}
