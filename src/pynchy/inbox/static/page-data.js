// What the host gave this page (its viewer, keys and settings), and the host's time: this machine's
// clock may be wrong.

export const pageData = JSON.parse(document.getElementById("facts").textContent);

let hostAheadMs = Date.parse(pageData.now) - Date.now();

export function setHostTime(text) {
  hostAheadMs = Date.parse(text) - Date.now();
}

export function hostNow() {
  return Date.now() + hostAheadMs;
}
