// Shows the view that the address names, keeps it up to date, and handles its forms and buttons.

import { confirmedIn, submit } from "./forms.js";
import { Rejected, fetchVersion, fetchView, session } from "./mock.js";
import { morph } from "./morph.js";
import { report } from "./toast.js";

const FIRST_VIEW = "calls";
const MIN_UPDATE_INTERVAL = 300; // milliseconds: a busy mock changes far more often than a user can read
const RETRY_INTERVAL = 1000;
const SESSION_ERRORS = ["control_token_missing", "api_key_invalid"];

let watching = new AbortController();
let isFiltering = false; // whether the next view is the current one with other filters

const page = () => document.getElementById("page");
const address = () => location.hash.replace(/^#\/?/, "") || FIRST_VIEW;
const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

// --- rendering

async function render({ isNewView = false } = {}) {
  const requested = address();
  const fresh = await fetchView(requested, watching.signal);
  if (requested !== address()) return;
  document.title = fresh.dataset.title;
  if (isNewView) {
    page().replaceWith(fresh);
    scrollTo(0, 0);
    document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
    document.querySelector("h1")?.focus({ preventScroll: true });
  } else {
    morph(page(), fresh);
  }
  setClock();
}

function setClock() {
  const { now, clock } = page().dataset;
  page().clockOffset = clock === "running" && now ? Date.parse(now) - Date.now() : undefined;
}

function tick() {
  const time = document.querySelector("#now time");
  if (page().clockOffset === undefined || !time) return;
  const now = new Date(Date.now() + page().clockOffset).toISOString();
  time.textContent = now.slice(0, 19).replace("T", " ");
  time.dateTime = now;
}

// --- live updates

async function openView() {
  watching.abort();
  watching = new AbortController();
  const { signal } = watching;
  const isNewView = !isFiltering;
  isFiltering = false;
  report("");
  try {
    await render({ isNewView });
  } catch (problem) {
    if (signal.aborted) return;
    await reportProblem(problem);
  }
  watch(signal);
}

async function watch(signal) {
  while (!signal.aborted) {
    try {
      if (document.hidden) {
        await visible();
      }
      const version = await fetchVersion(page().dataset.version ?? 0, signal);
      if (String(version) !== page().dataset.version) await render();
      showConnection(true);
      await sleep(MIN_UPDATE_INTERVAL);
    } catch (problem) {
      if (signal.aborted) return;
      showConnection(!(problem instanceof TypeError)); // fetch raises it when there is no response
      if (problem instanceof Rejected) {
        await reportProblem(problem);
        // Every further request would be rejected too, until the user enters another key or token.
        if (SESSION_ERRORS.includes(problem.code)) return;
      }
      await sleep(RETRY_INTERVAL);
    }
  }
}

function visible() {
  return new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
}

function showConnection(isLive) {
  const indicator = document.getElementById("live");
  if (!indicator) return;
  indicator.textContent = isLive ? "live" : "no response, retrying";
  indicator.classList.toggle("live", isLive);
}

async function reportProblem(problem) {
  report(problem.message, true);
  if (SESSION_ERRORS.includes(problem.code)) await askForSession();
}

// --- organization and access

async function askForSession() {
  const dialog = document.getElementById("session");
  if (dialog.open) return;
  for (const name of ["key", "token"]) dialog.querySelector(`[name=${name}]`).value = session.get(name);
  if (!(await confirmedIn(dialog))) return;
  for (const name of ["key", "token"]) session.set(name, dialog.querySelector(`[name=${name}]`).value.trim());
  openView();
}

/** Moves the token from the address, as `serve` prints it, to the session, so that it is not in a copied link. */
function takeToken() {
  const match = location.hash.match(/^#token=(.+)$/);
  if (!match) return;
  session.set("token", decodeURIComponent(match[1]));
  history.replaceState(null, "", location.pathname);
}

// --- events

async function onSubmit(event) {
  const form = event.target;
  if (form.method === "dialog") return;
  event.preventDefault();
  if (form.matches(".filters")) return; // onChange has applied it
  if (form.dataset.view) {
    openViewOf(form);
    return;
  }
  try {
    report("");
    const text = await submit(form, event.submitter);
    if (!text) return;
    await render();
    report(text);
  } catch (problem) {
    report(problem.message, true);
  }
}

function openViewOf(form) {
  const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value !== ""));
  const hash = `#/${form.dataset.view}${query.size ? `?${query}` : ""}`;
  if (location.hash === hash) openView();
  else location.hash = hash;
}

/** Applies a filter as soon as it is selected; like a tab that is clicked, it keeps the focus. */
function onChange(event) {
  const form = event.target.closest("form.filters");
  if (!form) return;
  isFiltering = true;
  openViewOf(form);
}

async function onClick(event) {
  const tab = event.target.closest(".tabs a");
  if (tab && tab.href !== location.href && !event.ctrlKey && !event.metaKey && !event.shiftKey) isFiltering = true;
  const button = event.target.closest("button[type=button]");
  if (!button) return;
  if ("session" in button.dataset) await askForSession();
  else if ("copyLink" in button.dataset) await copy(location.href, "Link copied.");
  else if (button.dataset.copy) await copy(document.getElementById(button.dataset.copy).textContent, "Copied.");
}

async function copy(text, success) {
  try {
    await navigator.clipboard.writeText(text);
    report(success);
  } catch {
    report("The browser allows copying only on this machine or over HTTPS. Select the text and copy it.", true);
  }
}

document.addEventListener("submit", onSubmit);
document.addEventListener("change", onChange);
document.addEventListener("click", onClick);
addEventListener("hashchange", openView);
setInterval(tick, 1000);
takeToken();
openView();
