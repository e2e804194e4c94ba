// The stream of events from the host: read, shared with the other tabs, and opened again when it is
// lost.

import { duration } from "./clock.js";
import { announceCount } from "./every-page.js";
import { ask, SIGNED_OUT } from "./host-requests.js";
import { now, setNow } from "./page-data.js";
import { Tabs } from "./tab-leader.js";
import { forgetAll } from "./unsent-text.js";

// The host speaks every ten seconds; this long without a word is a broken line.
const SILENCE_MS = 25000;
const RETRY_MS = [500, 1000, 2000, 4000, 8000];

// One connection to the host's stream. It is read with fetch, since an EventSource could not send the
// page key.
class Line {
  // `hear` gets every message; `lost` is called once when the connection ends by itself.
  constructor(hear, lost) {
    this.hear = hear;
    this.lost = lost;
    this.cut = new AbortController();
    this.run();
  }

  async run() {
    try {
      const reply = await ask("/inbox/stream", { signal: this.cut.signal });
      if (reply.ok) await this.read(reply.body.getReader());
    } catch {
      // Lost, as when it ends.
    }
    if (!this.cut.signal.aborted) this.lost();
  }

  async read(reader) {
    const decoder = new TextDecoder();
    let text = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const parts = (text + decoder.decode(value, { stream: true })).split("\n\n");
      text = parts.pop();
      for (const part of parts) if (!this.cut.signal.aborted) this.take(part);
    }
  }

  take(part) {
    const fields = Object.fromEntries(part.split("\n").map((row) => row.split(/: ?(.*)/s)));
    if (fields.event) this.hear(fields.event, JSON.parse(fields.data));
  }

  close() {
    this.cut.abort();
  }
}

export class Stream {
  constructor(handlers) {
    this.handlers = handlers;
    this.lastHeard = now();
    this.state = "connecting";
    this.failures = 0;
    // What is open, for a tab that has just come: [key, order, revision] by key.
    this.open = null;
    this.tabs = new Tabs({
      lead: () => this.connect(),
      follow: () => this.disconnect(),
      hear: (kind, body) => this.hearLeader(kind, body),
      called: (by) => this.describe(by),
    });
    this.tabs.start();
    setInterval(() => this.look(), 1000);
    addEventListener("online", () => this.hurry());
    addEventListener("pageshow", (event) => event.persisted && this.hurry());
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden && this.state !== "live") this.hurry();
    });
  }

  connect() {
    this.disconnect();
    const line = new Line(
      (kind, body) => this.line === line && this.hear(kind, body),
      () => this.line === line && this.lost(),
    );
    this.line = line;
  }

  disconnect() {
    clearTimeout(this.timer);
    this.line?.close();
    this.line = null;
  }

  hurry() {
    if (this.tabs.leads) this.connect();
    else this.tabs.call();
  }

  hear(kind, body) {
    if (kind === "out") return this.lost();
    if (kind === "sync") this.open = new Map(body.open.map((row) => [row[0], row]));
    if (kind === "card") this.open.set(body.key, [body.key, body.order, body.revision]);
    if (kind === "over") this.open.delete(body.key);
    this.failures = 0;
    this.tabs.tell(kind, body);
    this.pass(kind, body);
  }

  pass(kind, body) {
    if (this.isOut) return location.reload();
    if (body.now) setNow(body.now);
    this.lastHeard = now();
    this.show("live");
    // A tab that has just come may hear of a change before it is told what is open.
    if (kind === "sync") this.synced = true;
    if (this.synced) this.handlers[kind]?.(body);
  }

  async hearLeader(kind, body) {
    if (kind === "here") return;
    // Somebody may have signed in since, in this tab.
    if (kind === "out") return (await signedOut()) ? this.leave() : this.tabs.takeOver();
    if (kind !== "lost") return this.pass(kind, body);
    this.lastHeard = Math.min(now(), body.heard);
    this.show("lost");
    // What a tab does that nobody sees, browsers let it do seldom.
    if (body.hidden && !document.hidden) this.tabs.takeOver();
  }

  // Another tab asks how things stand.
  describe(by) {
    this.look();
    if (this.isOut) this.tabs.tell("out", {}, by);
    else if (this.state === "lost") this.tellLost(by);
    else if (this.open && this.state === "live") this.tabs.tell("sync", { open: [...this.open.values()] }, by);
    else this.tabs.tell("here", {}, by);
  }

  tellLost(to = null) {
    this.tabs.tell("lost", { heard: this.lastHeard, hidden: document.hidden }, to);
  }

  async lost() {
    this.disconnect();
    this.show(this.isOut ? "out" : "lost");
    this.tellLost();
    const wait = RETRY_MS[Math.min(this.failures, RETRY_MS.length - 1)];
    this.failures += 1;
    this.timer = setTimeout(() => this.connect(), wait);
    if (await signedOut()) this.leave();
  }

  // Whoever is signed out sees nothing any more, and leaves nothing behind.
  leave() {
    this.tabs.tell("out", {});
    this.show("out");
    this.isOut = true;
    forgetAll();
    announceCount(0);
    const text = document.createElement("p");
    text.className = "empty-search";
    text.textContent = SIGNED_OUT;
    document.getElementById("main").replaceChildren(text);
  }

  look() {
    if (this.tabs.leads && this.state === "live" && now() - this.lastHeard > SILENCE_MS) {
      this.show("lost");
      this.tellLost();
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
    const reply = await ask("/inbox/cards");
    return reply.status === 401;
  } catch {
    return false;
  }
}
