// Reads the stream of events from the host, shares it with the other tabs, and connects again when it
// is lost.

import { formatDuration } from "./clock.js";
import { showWaitingCount } from "./every-page.js";
import { fetchFromHost, SIGNED_OUT } from "./host-requests.js";
import { hostNow, setHostTime } from "./page-data.js";
import { TabLeadership } from "./tab-leader.js";
import { forgetAllUnsentText } from "./unsent-text.js";

// The host sends something every ten seconds; after this long without it the connection is lost.
const SILENCE_MS = 25000;
const RETRY_MS = [500, 1000, 2000, 4000, 8000];

// One connection to the host's stream. It is read with fetch, since an EventSource could not send the
// page key.
class StreamConnection {
  // `onMessage` gets every message; `onLost` is called once when the connection ends by itself.
  constructor(onMessage, onLost) {
    this.onMessage = onMessage;
    this.onLost = onLost;
    this.abortController = new AbortController();
    this.open();
  }

  async open() {
    try {
      const reply = await fetchFromHost("/inbox/stream", { signal: this.abortController.signal });
      if (reply.ok) await this.read(reply.body.getReader());
    } catch {
      // Lost, as when it ends.
    }
    if (!this.abortController.signal.aborted) this.onLost();
  }

  async read(reader) {
    const decoder = new TextDecoder();
    let buffered = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const blocks = (buffered + decoder.decode(value, { stream: true })).split("\n\n");
      buffered = blocks.pop();
      for (const block of blocks) if (!this.abortController.signal.aborted) this.readMessage(block);
    }
  }

  readMessage(block) {
    const fields = Object.fromEntries(block.split("\n").map((row) => row.split(/: ?(.*)/s)));
    if (fields.event) this.onMessage(fields.event, JSON.parse(fields.data));
  }

  close() {
    this.abortController.abort();
  }
}

export class EventStream {
  constructor(handlers) {
    this.handlers = handlers;
    this.lastHeardAt = hostNow();
    this.state = "connecting";
    this.failures = 0;
    // For a new tab: [key, order, revision] by key.
    this.openQuestions = null;
    this.tabs = new TabLeadership({
      onLead: () => this.connect(),
      onFollow: () => this.disconnect(),
      onMessage: (kind, body) => this.onLeaderMessage(kind, body),
      onStateRequest: (tabId) => this.sendStateTo(tabId),
    });
    this.tabs.start();
    setInterval(() => this.checkSilence(), 1000);
    addEventListener("online", () => this.reconnectNow());
    addEventListener("pageshow", (event) => event.persisted && this.reconnectNow());
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden && this.state !== "live") this.reconnectNow();
    });
  }

  connect() {
    this.disconnect();
    const connection = new StreamConnection(
      (kind, body) => this.connection === connection && this.onHostMessage(kind, body),
      () => this.connection === connection && this.onConnectionLost(),
    );
    this.connection = connection;
  }

  disconnect() {
    clearTimeout(this.retryTimer);
    this.connection?.close();
    this.connection = null;
  }

  reconnectNow() {
    if (this.tabs.isLeader) this.connect();
    else this.tabs.askLeader();
  }

  onHostMessage(kind, body) {
    if (kind === "out") return this.onConnectionLost();
    if (kind === "sync") this.openQuestions = new Map(body.open.map((row) => [row[0], row]));
    if (kind === "card") this.openQuestions.set(body.key, [body.key, body.order, body.revision]);
    if (kind === "over") this.openQuestions.delete(body.key);
    this.failures = 0;
    this.tabs.send(kind, body);
    this.handleMessage(kind, body);
  }

  handleMessage(kind, body) {
    if (this.isSignedOut) return location.reload();
    if (body.now) setHostTime(body.now);
    this.lastHeardAt = hostNow();
    this.showState("live");
    // A new tab may hear of a change before it is told what is open.
    if (kind === "sync") this.hasSynced = true;
    if (this.hasSynced) this.handlers[kind]?.(body);
  }

  async onLeaderMessage(kind, body) {
    if (kind === "here") return;
    // Somebody may have signed in since, in this tab.
    if (kind === "out") return (await checkSignedOut()) ? this.showSignedOut() : this.tabs.takeOver();
    if (kind !== "lost") return this.handleMessage(kind, body);
    this.lastHeardAt = Math.min(hostNow(), body.heard);
    this.showState("lost");
    // Browsers slow hidden tabs down.
    if (body.hidden && !document.hidden) this.tabs.takeOver();
  }

  sendStateTo(tabId) {
    this.checkSilence();
    if (this.isSignedOut) this.tabs.send("out", {}, tabId);
    else if (this.state === "lost") this.sendLost(tabId);
    else if (this.openQuestions && this.state === "live") this.tabs.send("sync", { open: [...this.openQuestions.values()] }, tabId);
    else this.tabs.send("here", {}, tabId);
  }

  sendLost(tabId = null) {
    this.tabs.send("lost", { heard: this.lastHeardAt, hidden: document.hidden }, tabId);
  }

  async onConnectionLost() {
    this.disconnect();
    this.showState(this.isSignedOut ? "out" : "lost");
    this.sendLost();
    const waitMs = RETRY_MS[Math.min(this.failures, RETRY_MS.length - 1)];
    this.failures += 1;
    this.retryTimer = setTimeout(() => this.connect(), waitMs);
    if (await checkSignedOut()) this.showSignedOut();
  }

  // Whoever is signed out sees nothing any more, and leaves nothing behind.
  showSignedOut() {
    this.tabs.send("out", {});
    this.showState("out");
    this.isSignedOut = true;
    forgetAllUnsentText();
    showWaitingCount(0);
    const notice = document.createElement("p");
    notice.className = "empty-search";
    notice.textContent = SIGNED_OUT;
    document.getElementById("main").replaceChildren(notice);
  }

  checkSilence() {
    if (this.tabs.isLeader && this.state === "live" && hostNow() - this.lastHeardAt > SILENCE_MS) {
      this.showState("lost");
      this.sendLost();
      this.connect();
    }
    this.showState(this.state);
  }

  showState(state) {
    this.state = state;
    const texts = {
      connecting: "connecting…",
      live: "live",
      lost: `reconnecting, last seen ${formatDuration((hostNow() - this.lastHeardAt) / 1000)} ago`,
      out: "signed out: pynchy inbox --open",
    };
    for (const element of document.querySelectorAll("[data-link]")) {
      element.dataset.link = state;
      const textElement = element.querySelector("[data-link-text]");
      if (textElement.textContent !== texts[state]) textElement.textContent = texts[state];
    }
  }
}

async function checkSignedOut() {
  try {
    const reply = await fetchFromHost("/inbox/cards");
    return reply.status === 401;
  } catch {
    return false;
  }
}
