// Requests to the host, with the page key of this browser. The cookie goes to every port of this
// machine; the key stays with this origin, so only our own pages can send it. The host wants both.

export const SIGNED_OUT =
  "You are signed out. On the machine where pynchy runs, pynchy inbox --open signs you in again.";

const STORAGE_NAME = `pynchy-page-key:${document.documentElement.dataset.host}`;

export function savePageKey(key) {
  localStorage.setItem(STORAGE_NAME, key);
}

export function forgetPageKey() {
  localStorage.removeItem(STORAGE_NAME);
}

export function hasPageKey() {
  try {
    return Boolean(localStorage.getItem(STORAGE_NAME));
  } catch {
    return false;
  }
}

export function fetchFromHost(path, options = {}) {
  const headers = { ...options.headers, "pynchy-page-key": localStorage.getItem(STORAGE_NAME) ?? "" };
  return fetch(path, { cache: "no-store", ...options, headers });
}

export function postToHost(path, body, options = {}) {
  const headers = { "content-type": "application/json" };
  return fetchFromHost(path, { method: "POST", headers, body: JSON.stringify(body), ...options });
}
