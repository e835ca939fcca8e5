// Shows the view that the address names, keeps it up to date, and lets its forms and buttons act.

import { act, answered } from "./forms.js";
import { Rejected, changed, session, view } from "./mock.js";
import { morph } from "./morph.js";
import { tell } from "./toast.js";

const FIRST_VIEW = "calls";
const SHORTEST_PAUSE = 300; // milliseconds between two renewals, however much happens
const RETRY_PAUSE = 1000;
const NEEDS_SESSION = ["control_token_missing", "api_key_invalid"];

let watching = new AbortController();
let filtering = false; // whether the next view is the one that is shown, with other filters

const page = () => document.getElementById("page");
const address = () => location.hash.replace(/^#\/?/, "") || FIRST_VIEW;
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

// --- what is shown

async function show({ arrived = false } = {}) {
  const shown = address();
  const fresh = await view(shown, watching.signal);
  if (shown !== address()) return;
  document.title = fresh.dataset.title;
  if (arrived) {
    page().replaceWith(fresh);
    scrollTo(0, 0);
    document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
    document.querySelector("h1")?.focus({ preventScroll: true });
  } else {
    morph(page(), fresh);
  }
  showClock();
}

function showClock() {
  const { now, runs } = page().dataset;
  page().startedAt = runs === "yes" && now ? Date.parse(now) - Date.now() : undefined;
}

function tick() {
  const time = document.querySelector("#now time");
  if (page().startedAt === undefined || !time) return;
  const now = new Date(Date.now() + page().startedAt).toISOString();
  time.textContent = now.slice(0, 19).replace("T", " ");
  time.dateTime = now;
}

// --- keeping it up to date

async function arrive() {
  watching.abort();
  watching = new AbortController();
  const { signal } = watching;
  const arrived = !filtering;
  filtering = false;
  tell("");
  try {
    await show({ arrived });
  } catch (problem) {
    if (signal.aborted) return;
    await explain(problem);
  }
  watch(signal);
}

async function watch(signal) {
  while (!signal.aborted) {
    try {
      if (document.hidden) {
        await visible();
      }
      const version = await changed(page().dataset.version ?? 0, signal);
      if (String(version) !== page().dataset.version) await show();
      live(true);
      await pause(SHORTEST_PAUSE);
    } catch (problem) {
      if (signal.aborted) return;
      live(!(problem instanceof TypeError)); // what fetch throws when nobody answers
      if (problem instanceof Rejected) {
        await explain(problem);
        if (NEEDS_SESSION.includes(problem.code)) return; // until somebody enters another key or token
      }
      await pause(RETRY_PAUSE);
    }
  }
}

function visible() {
  return new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
}

function live(is) {
  const sign = document.getElementById("live");
  if (!sign) return;
  sign.textContent = is ? "live" : "no answer";
  sign.classList.toggle("live", is);
}

async function explain(problem) {
  tell(problem.message, true);
  if (NEEDS_SESSION.includes(problem.code)) await askForSession();
}

// --- who is looking

async function askForSession() {
  const dialog = document.getElementById("session");
  if (dialog.open) return;
  for (const name of ["key", "token"]) dialog.querySelector(`[name=${name}]`).value = session.get(name);
  if (!(await answered(dialog))) return;
  for (const name of ["key", "token"]) session.set(name, dialog.querySelector(`[name=${name}]`).value.trim());
  arrive();
}

/** A token in the address, as `serve` prints it, is kept and taken out of the address. */
function takeToken() {
  const given = location.hash.match(/^#token=(.+)$/);
  if (!given) return;
  session.set("token", decodeURIComponent(given[1]));
  history.replaceState(null, "", location.pathname);
}

// --- what a person does

async function submitted(event) {
  const form = event.target;
  if (form.method === "dialog") return;
  event.preventDefault();
  if (form.dataset.go) {
    go(form);
    return;
  }
  try {
    tell("");
    const done = await act(form, event.submitter);
    if (!done) return;
    await show();
    tell(done);
  } catch (problem) {
    tell(problem.message, true);
  }
}

function go(form) {
  const chosen = new URLSearchParams([...new FormData(form)].filter(([, value]) => value !== ""));
  const wanted = `#/${form.dataset.go}${chosen.size ? `?${chosen}` : ""}`;
  if (location.hash === wanted) arrive();
  else location.hash = wanted;
}

/** A filter applies as soon as it is chosen, and keeps the focus. */
function chosen(event) {
  const form = event.target.closest("form.filters");
  if (!form) return;
  filtering = true;
  go(form);
}

async function clicked(event) {
  const button = event.target.closest("button[type=button]");
  if (!button) return;
  if ("session" in button.dataset) await askForSession();
  else if ("copyLink" in button.dataset) await copy(location.href, "The link is copied.");
  else if (button.dataset.copy) await copy(document.getElementById(button.dataset.copy).textContent, "Copied.");
}

async function copy(text, done) {
  try {
    await navigator.clipboard.writeText(text);
    tell(done);
  } catch {
    tell("This browser lets only pages of this machine, or https, copy. Select the text instead.", true);
  }
}

document.addEventListener("submit", submitted);
document.addEventListener("change", chosen);
document.addEventListener("click", clicked);
addEventListener("hashchange", arrive);
setInterval(tick, 1000);
takeToken();
arrive();
