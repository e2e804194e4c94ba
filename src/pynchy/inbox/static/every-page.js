// What every page has: the clock, the count of what waits, words for screen readers, the dialog with
// the keys and settings, signing out.

import { startClock } from "./clock.js";
import { forgetKey, post } from "./host-requests.js";
import { offerNotifications } from "./notifications.js";
import { forgetAll } from "./unsent-text.js";

const SINGLE_KEYS = "pynchy-single-keys";

export function singleKeys() {
  return localStorage.getItem(SINGLE_KEYS) !== "off";
}

export function openHelp() {
  const help = document.getElementById("help");
  if (!help.open) help.showModal();
}

export function isTyping(target) {
  return target.matches?.("textarea, select, input:not([type=checkbox], [type=radio])");
}

export function say(text) {
  const region = document.getElementById("say");
  region.textContent = "";
  // A reader is told of a change, so the same words twice need a moment between them.
  setTimeout(() => {
    region.textContent = text;
  }, 50);
}

export function announceCount(count) {
  for (const place of document.querySelectorAll("[data-count]")) {
    place.textContent = String(count);
    place.hidden = count === 0;
  }
  const title = document.title.replace(/^\(\d+\) /, "");
  document.title = count ? `(${count}) ${title}` : title;
  if (navigator.setAppBadge) {
    (count ? navigator.setAppBadge(count) : navigator.clearAppBadge()).catch(() => {});
  }
}

function startSettings() {
  const box = document.querySelector("[data-setting=single-keys]");
  box.checked = singleKeys();
  document.documentElement.classList.toggle("no-keys", !box.checked);
  box.addEventListener("change", () => {
    localStorage.setItem(SINGLE_KEYS, box.checked ? "on" : "off");
    document.documentElement.classList.toggle("no-keys", !box.checked);
  });
  document.querySelector("[data-insecure]").hidden = isSecureContext;
}

export function startShell() {
  startClock();
  startSettings();
  offerNotifications();
  document.querySelector("[data-open=help]").addEventListener("click", openHelp);
  document.querySelector("[data-close]").addEventListener("click", () => {
    document.getElementById("help").close();
  });
  document.querySelector("[data-do=sign-out]").addEventListener("click", async () => {
    await post("/inbox/sign-out", {}).catch(() => {});
    forgetKey();
    forgetAll();
    location.assign("/");
  });
}
