// The pages beside the list: what is over, and who is waiting.

import { make } from "./card-element.js";
import { tick } from "./clock.js";
import { Stream } from "./event-stream.js";
import { announceCount, isTyping, openHelp, say, singleKeys, startShell } from "./every-page.js";
import { ask, post } from "./host-requests.js";
import { notify, notifyOf, unnotify } from "./notifications.js";
import { facts } from "./page-data.js";
import { isSnoozed } from "./snooze.js";

let open = null;
const agents = document.getElementById("agents");
let timer;

startShell();

function count() {
  announceCount([...(open ?? [])].filter((key) => !isSnoozed(key)).length);
}

async function refresh() {
  const reply = await ask("/inbox/agents").catch(() => null);
  if (!reply?.ok) return;
  const focused = agents.contains(document.activeElement) ? document.activeElement.ariaLabel : null;
  agents.innerHTML = await reply.text();
  tick(agents);
  if (focused) agents.querySelector(`[aria-label="${CSS.escape(focused)}"]`)?.focus();
}

function changed() {
  count();
  if (!agents) return;
  clearTimeout(timer);
  timer = setTimeout(refresh, 200);
}

agents?.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-do]");
  if (!button) return;
  const item = button.closest("[data-key]");
  const [group, id] = item.dataset.key.split("/");
  const status = item.querySelector(".status");
  for (const other of item.querySelectorAll("button")) other.disabled = true;
  status.hidden = false;
  status.textContent = "Sending…";
  const path = `/api/questions/${encodeURIComponent(id)}/${button.dataset.do}`;
  const reply = await post(path, { group }).catch(() => null);
  if (reply?.ok) return changed();
  const told = (await reply?.json().catch(() => ({}))) ?? {};
  status.textContent = told.error ?? "The host does not answer; try again.";
  say(status.textContent);
  for (const other of item.querySelectorAll("button")) other.disabled = false;
});

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || !singleKeys()) return;
  if (facts.keys[event.key] === "help") openHelp();
  if (facts.keys[event.key] === "search") {
    const field = document.querySelector("#main [data-search]");
    if (field) event.preventDefault();
    field?.focus();
  }
});

new Stream({
  sync: (body) => {
    const keys = body.open.map(([key]) => key);
    notifyOf(keys.filter((key) => open && !open.has(key)));
    open = new Set(keys);
    changed();
  },
  card: (body) => {
    if (!open.has(body.key)) notify(make(body.html));
    open.add(body.key);
    changed();
  },
  over: (body) => {
    open.delete(body.key);
    unnotify(body.key);
    changed();
  },
});
if (agents) setInterval(refresh, 15000);
