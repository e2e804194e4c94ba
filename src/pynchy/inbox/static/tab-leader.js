// Chooses the one tab of this browser that has the connection to the host, and passes on what it gets:
// browsers allow about six connections to a host, and a click needs one, too. The leader holds a lock.

const SHARED_NAME = "pynchy-stream";
// A leader sends something at least every ten seconds, or when it is asked.
const SILENCE_MS = 15000;
const ANSWER_MS = 3000;

export class TabLeadership {
  // `onLead` is called when this tab is to connect, `onFollow` when it is not to any more, `onMessage`
  // with what the leader passes on, and `onStateRequest` when a tab asks this leader for its state.
  constructor(handlers) {
    this.handlers = handlers;
    this.isLeader = false;
    this.leaderHeardAt = performance.now();
    this.id = Math.random().toString(36).slice(2);
    this.isAlone = !(navigator.locks && "BroadcastChannel" in window);
  }

  start() {
    // Plain http from another machine has no locks: there, each tab has a connection of its own.
    if (this.isAlone) return this.becomeLeader();
    this.channel = new BroadcastChannel(SHARED_NAME);
    this.channel.addEventListener("message", ({ data }) => this.onMessage(data));
    this.waitForLock();
    this.askLeader();
    setInterval(() => this.checkLeader(), 1000);
  }

  waitForLock() {
    this.lockWait = new AbortController();
    this.requestLock({ signal: this.lockWait.signal });
  }

  takeOver() {
    if (this.isLeader || this.isTakingOver) return;
    this.isTakingOver = true;
    this.lockWait.abort();
    this.requestLock({ steal: true });
  }

  requestLock(options) {
    const onLocked = () => {
      this.becomeLeader();
      return new Promise(() => {});
    };
    navigator.locks.request(SHARED_NAME, options, onLocked).catch(() => this.isLeader && this.stepDown());
  }

  becomeLeader() {
    this.isLeader = true;
    this.isTakingOver = false;
    this.handlers.onLead();
  }

  // Another tab has taken the lock away: this one was too quiet.
  stepDown() {
    this.isLeader = false;
    this.leaderHeardAt = performance.now();
    this.handlers.onFollow();
    this.waitForLock();
  }

  // Tabs may be of different versions, so kinds and names within messages stay as they are.
  send(kind, body, to = null) {
    if (this.isLeader) this.channel?.postMessage({ kind, body, to });
  }

  askLeader() {
    if (this.isLeader || this.isAlone) return;
    this.askedAt ??= performance.now();
    this.channel.postMessage({ kind: "call", from: this.id });
  }

  onMessage({ kind, body, to, from }) {
    if (kind === "call") return this.isLeader && this.handlers.onStateRequest(from);
    if (this.isLeader || (to && to !== this.id)) return;
    this.leaderHeardAt = performance.now();
    this.askedAt = null;
    this.handlers.onMessage(kind, body);
  }

  // Nobody answers: the tab that led is frozen, or gone without a trace.
  checkLeader() {
    if (this.isLeader) return;
    const at = performance.now();
    if (this.askedAt && at - this.askedAt > ANSWER_MS && at - this.leaderHeardAt > ANSWER_MS) {
      this.askedAt = null;
      this.takeOver();
    } else if (at - this.leaderHeardAt > SILENCE_MS && !this.askedAt) this.askLeader();
  }
}
