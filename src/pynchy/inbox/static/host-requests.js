// Requests to the host, signed with the page key of this browser. The cookie goes to every port of
// this machine; the key stays with this origin and is never sent. Whatever does not prove that it
// knows the key, too, is not the host: another program may have taken its port while it was down.

import { hashText, randomText, signText } from "./page-signature.js";

export const SIGNED_OUT =
  "You are signed out. On the machine where pynchy runs, pynchy inbox --open signs you in again.";

const STORAGE_NAME = `pynchy-page-key:${document.documentElement.dataset.host}`;

// Another one for each start of the host, so that what is signed is of use to no other start.
let nonce = document.documentElement.dataset.nonce ?? "-";

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

export async function fetchFromHost(path, options = {}) {
  // Another request may learn the host's new one before the reply to this is here.
  const usedNonce = nonce;
  const reply = await fetchSigned(path, options);
  const newNonce = reply.status === 401 && reply.headers.get("pynchy-nonce");
  if (!newNonce || newNonce === usedNonce) return reply;
  nonce = newNonce;
  return fetchSigned(path, options);
}

export function postToHost(path, body, options = {}) {
  const headers = { "content-type": "application/json" };
  return fetchFromHost(path, { method: "POST", headers, body: JSON.stringify(body), ...options });
}

async function fetchSigned(path, options) {
  const key = hashText(localStorage.getItem(STORAGE_NAME) ?? "");
  const challenge = randomText();
  const { pathname, search } = new URL(path, location.href);
  const parts = [nonce, challenge, options.method ?? "GET", pathname + search, hashText(options.body ?? "")];
  const signature = signText(key, ["request", ...parts].join("\n"));
  const headers = { ...options.headers, "pynchy-signature": [nonce, challenge, parts[4], signature].join(" ") };
  const reply = await fetch(path, { cache: "no-store", ...options, headers });
  // Who is signed out is no longer known to the host, which then has nothing to prove it with.
  if (reply.status === 401) return reply;
  if (reply.headers.get("pynchy-proof") === signText(key, `reply\n${challenge}`)) return reply;
  reply.body?.cancel();
  throw new Error("not the host");
}
