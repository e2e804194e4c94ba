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
