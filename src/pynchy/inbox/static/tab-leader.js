// One connection for all tabs of this browser: browsers allow about six to a host, and a click needs
// one, too. The tab that holds a lock leads; it has the connection and passes on what it hears.

const NAME = "pynchy-stream";
// A leader says something at least every ten seconds, or answers when it is called.
const SILENCE_MS = 15000;
const ANSWER_MS = 3000;

export class Tabs {
  // `lead` is called when this tab is to connect, `follow` when it is not to any more, `hear` with
  // what the leader passes on, and `called` when another tab asks the leader how things stand.
  constructor(handlers) {
    this.handlers = handlers;
    this.leads = false;
    this.spoke = performance.now();
    this.id = Math.random().toString(36).slice(2);
    this.alone = !(navigator.locks && "BroadcastChannel" in window);
  }

  start() {
    // Plain http from another machine has no locks: there, each tab has a connection of its own.
    if (this.alone) return this.lead();
    this.channel = new BroadcastChannel(NAME);
    this.channel.addEventListener("message", ({ data }) => this.take(data));
    this.wait();
    this.call();
    setInterval(() => this.look(), 1000);
  }

  wait() {
    this.waiting = new AbortController();
    this.request({ signal: this.waiting.signal });
  }

  takeOver() {
    if (this.leads || this.takes) return;
    this.takes = true;
    this.waiting.abort();
    this.request({ steal: true });
  }

  request(options) {
    const held = () => {
      this.lead();
      return new Promise(() => {});
    };
    navigator.locks.request(NAME, options, held).catch(() => this.leads && this.stepBack());
  }

  lead() {
    this.leads = true;
    this.takes = false;
    this.handlers.lead();
  }

  // Another tab has taken the lock away: this one was too quiet.
  stepBack() {
    this.leads = false;
    this.spoke = performance.now();
    this.handlers.follow();
    this.wait();
  }

  tell(kind, body, to = null) {
    if (this.leads) this.channel?.postMessage({ kind, body, to });
  }

  call() {
    if (this.leads || this.alone) return;
    this.calledAt ??= performance.now();
    this.channel.postMessage({ kind: "call", from: this.id });
  }

  take({ kind, body, to, from }) {
    if (kind === "call") return this.leads && this.handlers.called(from);
    if (this.leads || (to && to !== this.id)) return;
    this.spoke = performance.now();
    this.calledAt = null;
    this.handlers.hear(kind, body);
  }

  // Nobody answers: the tab that led is frozen, or gone without a trace.
  look() {
    if (this.leads) return;
    const at = performance.now();
    if (this.calledAt && at - this.calledAt > ANSWER_MS && at - this.spoke > ANSWER_MS) {
      this.calledAt = null;
      this.takeOver();
    } else if (at - this.spoke > SILENCE_MS && !this.calledAt) this.call();
  }
}
