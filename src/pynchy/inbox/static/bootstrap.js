// A page arrives empty, since the browser asks for it with a cookie alone. This asks for what
// belongs in it with the page key, and starts it.

import { ask, hasKey, SIGNED_OUT } from "./host-requests.js";

const RETRY_MS = 2000;

function tell(text) {
  document.querySelector("[data-trouble]").textContent = text;
}

async function fill(reply) {
  const page = new DOMParser().parseFromString(await reply.text(), "text/html");
  const facts = page.getElementById("facts");
  if (!facts) return tell("There is no such page here.");
  // The host is another version by now: its pages need its own scripts.
  if (page.documentElement.dataset.build !== document.documentElement.dataset.build) return location.reload();
  document.title = page.title;
  document.body.replaceWith(document.adoptNode(page.body));
  await import(`./${facts.dataset.module}.js`);
}

async function start() {
  if (!hasKey()) return tell(SIGNED_OUT);
  const reply = await ask(location.href).catch(() => null);
  if (reply?.status === 401) return tell(SIGNED_OUT);
  if (reply && reply.status < 500) return fill(reply);
  tell("The host does not answer. Trying again…");
  setTimeout(start, RETRY_MS);
}

start();
