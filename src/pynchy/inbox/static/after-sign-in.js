// The browser has just been let in: keep the key, and go where it wanted to.

import { savePageKey } from "./host-requests.js";

const entry = JSON.parse(document.getElementById("entry").textContent);

try {
  savePageKey(entry.key);
  location.replace(entry.next);
} catch {
  document.querySelector("[data-trouble]").textContent =
    "This browser keeps nothing for this page, so it cannot stay signed in. Allow site data for this address, then run pynchy inbox --open again.";
}
