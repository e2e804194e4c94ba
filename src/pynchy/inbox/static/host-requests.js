// Requests to the host, with the page key of this browser. The cookie goes to every port of this
// machine; the key stays with this origin, so only our own pages can send it. The host wants both.

export const SIGNED_OUT =
  "You are signed out. On the machine where pynchy runs, pynchy inbox --open signs you in again.";

const NAME = `pynchy-page-key:${document.documentElement.dataset.host}`;

export function keepKey(key) {
  localStorage.setItem(NAME, key);
}

export function forgetKey() {
  localStorage.removeItem(NAME);
}

export function hasKey() {
  try {
    return Boolean(localStorage.getItem(NAME));
  } catch {
    return false;
  }
}

// Ask the host for something, as a page of ours.
export function ask(path, options = {}) {
  const headers = { ...options.headers, "pynchy-page-key": localStorage.getItem(NAME) ?? "" };
  return fetch(path, { cache: "no-store", ...options, headers });
}

export function post(path, body, options = {}) {
  const headers = { "content-type": "application/json" };
  return ask(path, { method: "POST", headers, body: JSON.stringify(body), ...options });
}
