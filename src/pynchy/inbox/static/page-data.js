// What the host told this page, and the host's time: this machine's clock may be wrong.

const told = JSON.parse(document.getElementById("facts").textContent);

export const facts = told;

let ahead = Date.parse(told.now) - Date.now();

export function setNow(text) {
  ahead = Date.parse(text) - Date.now();
}

export function now() {
  return Date.now() + ahead;
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
