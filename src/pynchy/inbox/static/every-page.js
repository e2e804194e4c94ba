// Starts what every page has (clock, help dialog, settings, signing out), with what all of them use:
// the count of what waits, and announcements to screen readers.

import { startClock } from "./clock.js";
import { forgetPageKey, postToHost } from "./host-requests.js";
import { startNotifications } from "./notifications.js";
import { forgetAllUnsentText } from "./unsent-text.js";

const SINGLE_KEYS_SETTING = "pynchy-single-keys";

export function singleKeysEnabled() {
  return localStorage.getItem(SINGLE_KEYS_SETTING) !== "off";
}

export function openHelp() {
  const help = document.getElementById("help");
  if (!help.open) help.showModal();
}

export function isTextField(target) {
  return target.matches?.("textarea, select, input:not([type=checkbox], [type=radio])");
}

export function announce(text) {
  const region = document.getElementById("say");
  region.textContent = "";
  // Screen readers read changes only, so the same words twice need a moment between them.
  setTimeout(() => {
    region.textContent = text;
  }, 50);
}

export function showWaitingCount(count) {
  for (const element of document.querySelectorAll("[data-count]")) {
    element.textContent = String(count);
    element.hidden = count === 0;
  }
  const title = document.title.replace(/^\(\d+\) /, "");
  document.title = count ? `(${count}) ${title}` : title;
  if (navigator.setAppBadge) {
    (count ? navigator.setAppBadge(count) : navigator.clearAppBadge()).catch(() => {});
  }
}

function startSettings() {
  const checkbox = document.querySelector("[data-setting=single-keys]");
  checkbox.checked = singleKeysEnabled();
  document.documentElement.classList.toggle("no-keys", !checkbox.checked);
  checkbox.addEventListener("change", () => {
    localStorage.setItem(SINGLE_KEYS_SETTING, checkbox.checked ? "on" : "off");
    document.documentElement.classList.toggle("no-keys", !checkbox.checked);
  });
  document.querySelector("[data-insecure]").hidden = isSecureContext;
}

// The menu closes when something else is clicked or one of its items is used, and by Escape.
function startMenu() {
  const menu = document.querySelector("details.menu");
  document.addEventListener("click", (event) => {
    if (!menu.contains(event.target) || event.target.closest("[data-open]")) menu.open = false;
  });
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    event.preventDefault();
    menu.open = false;
    menu.querySelector("summary").focus();
  });
}

export function startEveryPage() {
  startClock();
  startSettings();
  startNotifications();
  startMenu();
  document.querySelector("[data-open=help]").addEventListener("click", openHelp);
  document.querySelector("[data-close]").addEventListener("click", () => {
    document.getElementById("help").close();
  });
  document.querySelector("[data-do=sign-out]").addEventListener("click", async () => {
    await postToHost("/inbox/sign-out", {}).catch(() => {});
    forgetPageKey();
    forgetAllUnsentText();
    location.assign("/");
  });
}
