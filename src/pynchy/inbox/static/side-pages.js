// Starts the pages without cards (agents, history, no such question): they count, notify and refresh
// the agents.

import { cardFromHtml } from "./card-element.js";
import { updateTimes } from "./clock.js";
import { EventStream } from "./event-stream.js";
import { announce, isTextField, openHelp, showWaitingCount, singleKeysEnabled, startEveryPage } from "./every-page.js";
import { fetchFromHost, postToHost } from "./host-requests.js";
import { closeNotification, notifyOfCard, notifyOfQuestions } from "./notifications.js";
import { pageData } from "./page-data.js";
import { isSnoozed } from "./snooze.js";

let openKeys = null;
const agentList = document.getElementById("agents");
let refreshTimer;
let shownAgents = "";
let isAskingForChanges = false;

startEveryPage();

function updateCount() {
  showWaitingCount([...(openKeys ?? [])].filter((key) => !isSnoozed(key)).length);
}

// What to find the focused element by in a new list.
function nameOf(element) {
  return element.ariaLabel ?? element.getAttribute("href") ?? "";
}

async function refreshAgents(path = "/inbox/agents") {
  const reply = await fetchFromHost(path).catch(() => null);
  if (reply?.status !== 200) return;
  const html = await reply.text();
  // A list that is as it was stays: somebody may be reading or selecting.
  if (html === shownAgents) return;
  shownAgents = html;
  const focused = agentList.contains(document.activeElement) ? nameOf(document.activeElement) : "";
  agentList.innerHTML = html;
  updateTimes(agentList);
  if (focused) [...agentList.querySelectorAll("a, button")].find((one) => nameOf(one) === focused)?.focus();
}

// The stream tells nothing of agents that pynchy did not start. While they are as this page knows them,
// the host has next to nothing to do for the answer.
async function askForChanges() {
  if (document.hidden || isAskingForChanges) return;
  isAskingForChanges = true;
  const known = agentList.querySelector("[data-revision]")?.dataset.revision ?? "";
  await refreshAgents(`/inbox/agents?known=${encodeURIComponent(known)}`);
  isAskingForChanges = false;
}

function onChange() {
  updateCount();
  if (!agentList) return;
  clearTimeout(refreshTimer);
  refreshTimer = setTimeout(() => refreshAgents(), 200);
}

agentList?.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-do]");
  if (!button) return;
  const item = button.closest("[data-key]");
  const [group, id] = item.dataset.key.split("/");
  const status = item.querySelector(".status");
  for (const other of item.querySelectorAll("button")) other.disabled = true;
  status.hidden = false;
  status.textContent = "Sending…";
  shownAgents = "";
  const path = `/api/questions/${encodeURIComponent(id)}/${button.dataset.do}`;
  const reply = await postToHost(path, { group }).catch(() => null);
  if (reply?.ok) return onChange();
  const replyBody = (await reply?.json().catch(() => ({}))) ?? {};
  status.textContent = replyBody.error ?? "The host does not answer; try again.";
  announce(status.textContent);
  for (const other of item.querySelectorAll("button")) other.disabled = false;
});

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || isTextField(event.target) || !singleKeysEnabled()) return;
  if (pageData.keys[event.key] === "help") openHelp();
  if (pageData.keys[event.key] === "search") {
    const field = document.querySelector("#main [data-search]");
    if (field) event.preventDefault();
    field?.focus();
  }
});

new EventStream({
  sync: (body) => {
    const keys = body.open.map(([key]) => key);
    notifyOfQuestions(keys.filter((key) => openKeys && !openKeys.has(key)));
    openKeys = new Set(keys);
    onChange();
  },
  card: (body) => {
    if (!openKeys.has(body.key)) notifyOfCard(cardFromHtml(body.html));
    openKeys.add(body.key);
    onChange();
  },
  over: (body) => {
    openKeys.delete(body.key);
    closeNotification(body.key);
    onChange();
  },
});
if (agentList) {
  setInterval(() => document.hidden || refreshAgents(), 15000);
  setInterval(askForChanges, 1500);
  document.addEventListener("visibilitychange", () => document.hidden || refreshAgents());
}
