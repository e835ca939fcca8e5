// Verifies the signature of a webhook attempt in the page, so that the secret is sent nowhere.

/** Shows whether the selected attempt was signed with the typed secret. */
export async function showVerification(form) {
  const output = form.querySelector("output");
  const { timestamp, signature } = form.querySelector("select").selectedOptions[0].dataset;
  const secret = form.querySelector("input").value.trim();
  if (!crypto.subtle) {
    show(output, false, "The browser computes signatures only on this machine or over HTTPS.");
    return;
  }
  const body = document.getElementById("raw-body").textContent;
  const isValid = (await signatureOf(secret, timestamp, body)) === signature;
  show(output, isValid, isValid ? VALID : INVALID + (secret.startsWith("whsec_") ? "" : NO_PREFIX));
}

const VALID =
  "The signature is valid: this attempt was signed with this secret. If your receiver rejects it, it verifies " +
  "another body than the raw one, uses another secret, or its clock is off by more than 5 minutes.";
const INVALID = "The signature is invalid: this attempt was not signed with this secret. Is it the secret of another endpoint?";
const NO_PREFIX = " A secret begins with whsec_.";

function show(output, isValid, text) {
  output.textContent = text;
  output.className = isValid ? "valid" : "invalid";
}

async function signatureOf(secret, timestamp, body) {
  const bytes = (text) => new TextEncoder().encode(text);
  const key = await crypto.subtle.importKey("raw", bytes(secret), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const digest = new Uint8Array(await crypto.subtle.sign("HMAC", key, bytes(`${timestamp}.${body}`)));
  return `sha256=${[...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
