// Fetches the content of a page with the page key, and starts its script. The page itself arrives
// empty, since the browser asks for it with a cookie alone.

import { fetchFromHost, hasPageKey, SIGNED_OUT } from "./host-requests.js";

const RETRY_MS = 2000;

function showText(text) {
  document.querySelector("[data-trouble]").textContent = text;
}

async function showPage(reply) {
  const page = new DOMParser().parseFromString(await reply.text(), "text/html");
  // The id stays: the script of another version, too, must know a page from an error.
  const pageData = page.getElementById("facts");
  if (!pageData) return showText("There is no such page here.");
  // The host is another version by now: its pages need its own scripts.
  if (page.documentElement.dataset.build !== document.documentElement.dataset.build) return location.reload();
  document.title = page.title;
  document.body.replaceWith(document.adoptNode(page.body));
  await import(`./${pageData.dataset.module}.js`);
}

async function loadPage() {
  if (!hasPageKey()) return showText(SIGNED_OUT);
  const reply = await fetchFromHost(location.href).catch(() => null);
  if (reply?.status === 401) return showText(SIGNED_OUT);
  if (reply && reply.status < 500) return showPage(reply);
  showText("The host does not answer. Trying again…");
  setTimeout(loadPage, RETRY_MS);
}

loadPage();
