// Shows ages and times left, and updates them every second.

import { hostNow } from "./page-data.js";

const UNITS = [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]];

export function formatDuration(seconds) {
  let left = Math.max(0, Math.floor(seconds));
  const parts = [];
  for (const [size, unit] of UNITS) {
    const count = Math.floor(left / size);
    left -= count * size;
    if (count) parts.push(`${count}${unit}`);
    else if (parts.length) break;
  }
  return parts.slice(0, 2).join(" ") || "0s";
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function updateTimes(root = document) {
  const at = hostNow();
  for (const element of root.querySelectorAll("time[data-age]")) {
    setText(element, `${formatDuration((at - Date.parse(element.dateTime)) / 1000)} ago`);
  }
  for (const element of root.querySelectorAll("time[data-lasts]")) {
    setText(element, formatDuration((at - Date.parse(element.dateTime)) / 1000));
  }
  for (const element of root.querySelectorAll("time[data-waits]")) {
    const left = (Date.parse(element.dateTime) - at) / 1000;
    setText(element, left > 0 ? `the agent waits ${formatDuration(left)} more` : element.dataset.waits);
  }
  for (const element of root.querySelectorAll("time[data-left]")) {
    const left = (Date.parse(element.dateTime) - at) / 1000;
    setText(element, left > 0 ? `${formatDuration(left)} left` : "time is up");
    element.classList.toggle("soon", left < 600);
    // How long the agent waits matters more than an end that is days away.
    const isFar = left > 86400 && element.closest(".ages")?.querySelector(".waits");
    element.parentElement.hidden = Boolean(isFar);
  }
}

export function startClock() {
  updateTimes();
  setInterval(updateTimes, 1000);
}
