// Keeps the page key of a browser that has just signed in, and goes to the page that it wanted.

import { savePageKey } from "./host-requests.js";

const entry = JSON.parse(document.getElementById("entry").textContent);

try {
  savePageKey(entry.key);
  location.replace(entry.next);
} catch {
  document.querySelector("[data-trouble]").textContent =
    "This browser keeps nothing for this page, so it cannot stay signed in. Allow site data for this address, then run pynchy inbox --open again.";
}
