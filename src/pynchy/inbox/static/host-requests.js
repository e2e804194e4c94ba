// The key of this browser's pages. The cookie goes to every port of this machine; this stays with
// this origin, so only our own pages can send it. The host wants both.

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
