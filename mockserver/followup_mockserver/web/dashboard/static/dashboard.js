// Shows the view that the address names, and handles the forms and buttons of the page.

import { confirmedIn, showValues, submit } from "./forms.js";
import { hideFound, moveInFound, showFound } from "./found.js";
import { colourJson } from "./json.js";
import { onKey, openRow, showShortcuts } from "./keyboard.js";
import { Live } from "./live.js";
import { fetchView, session } from "./mock.js";
import { morph } from "./morph.js";
import { beginOnStrip, endOnStrip, showStrips } from "./strip.js";
import { MockClock, showTimes, showZoneOfFields, zone } from "./times.js";
import { report } from "./toast.js";
import { showVerification } from "./verify.js";

const FIRST_VIEW = "overview";
const SESSION_ERRORS = ["control_token_missing", "api_key_invalid"];

const live = new Live({ render, onRejected });
let isFiltering = false; // whether the next view is the current one with other filters
let clock = new MockClock({});

const page = () => document.getElementById("page");
const address = () => location.hash.replace(/^#\/?/, "") || FIRST_VIEW;

// --- rendering

async function render({ isNewView = false, signal } = {}) {
  const requested = address();
  const fresh = await fetchView(withMark(requested), signal);
  if (requested !== address()) return;
  const only = isNewView && fresh.querySelector("a[data-only]");
  if (only) {
    location.replace(only.hash); // not a new entry of the history, so that Back leads to the page before the search
    return;
  }
  document.title = fresh.dataset.title;
  clock = new MockClock(fresh.dataset);
  noticeEpoch(fresh.dataset.epoch);
  prepare(fresh);
  if (isNewView) {
    page().replaceWith(fresh);
    scrollTo(0, 0);
    document.querySelector("h1")?.focus({ preventScroll: true });
  } else {
    morph(page(), fresh);
  }
  showValues(page());
}

/** Completes a page that the mock has rendered with the choices of this tab. */
function prepare(fresh) {
  const isUtc = zone.get() === "utc";
  const timeZone = isUtc ? "UTC" : fresh.dataset.timeZone;
  showTimes(fresh, clock, timeZone);
  showZoneOfFields(fresh, timeZone);
  showStrips(fresh, clock, timeZone);
  colourJson(fresh);
  const notFound = fresh.querySelector("[data-not-found]");
  if (notFound && session.get("lost")) notFound.textContent = session.get("lost");
  fresh.querySelector("[data-zone]").setAttribute("aria-pressed", isUtc);
  fresh.querySelector("[data-menu]").setAttribute("aria-expanded", "menu" in document.body.dataset);
}

/** Returns the address of a list of calls with the mark of this tab; any other address as it is. */
function withMark(path) {
  const [view, query] = path.split("?");
  const mark = session.get("mark");
  if (view !== "calls" || !mark) return path;
  return `calls?${new URLSearchParams({ mark, ...Object.fromEntries(new URLSearchParams(query)) })}`;
}

/** Marks this moment: later calls get a tab of their own in the list of calls. */
function mark() {
  session.set("mark", page().dataset.lastCall);
  const list = `#/calls?show=since_the_mark&mark=${page().dataset.lastCall}`;
  if (/^calls(\?|$)/.test(address())) location.hash = list;
  report("Marked. The list of calls has a tab for the calls since then.", { links: [["Calls since the mark", list]] });
}

/** Notices a reset or a restart of the mock by its epoch, also if this tab showed another page, or none, meanwhile. */
function noticeEpoch(epoch) {
  const before = session.get("epoch");
  session.set("epoch", epoch);
  if (!before || before === epoch) return;
  session.set("mark", "");
  const isReset = before.split(".")[0] === epoch.split(".")[0];
  session.set("lost", `The mock was ${isReset ? "reset" : "restarted"}; its data is gone`);
  report(isReset ? "The mock was reset." : "The mock was restarted: its earlier data is gone.");
}

/** Lets a running clock, and the times relative to it, run on between two updates. */
function tick() {
  if (!clock.isRunning) return;
  const now = document.querySelector("#now time");
  if (now) now.dateTime = new Date(clock.now()).toISOString();
  showTimes(page(), clock, zone.get() === "utc" ? "UTC" : page().dataset.timeZone);
}

async function openView() {
  const isNewView = !isFiltering;
  isFiltering = false;
  report("");
  hideFound();
  if (isNewView) showMenu(false);
  await live.start({ isNewView });
}

async function onRejected(problem) {
  report(problem.message, { isProblem: true });
  // Every further request would be rejected too, until the user enters another key or token.
  if (!SESSION_ERRORS.includes(problem.code)) return false;
  await askForSession(problem.message);
  return true;
}

// --- organization and access

/** Asks for another key or token; the reason says why, as the dialog covers the report. */
async function askForSession(reason = "") {
  const dialog = document.getElementById("session");
  if (dialog.open) return;
  dialog.querySelector("[role=alert]").textContent = reason;
  for (const name of ["key", "token"]) dialog.querySelector(`[name=${name}]`).value = session.get(name);
  if (!(await confirmedIn(dialog))) return;
  for (const name of ["key", "token"]) session.set(name, dialog.querySelector(`[name=${name}]`).value.trim());
  for (const name of ["epoch", "lost", "mark"]) session.set(name, "");
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
  if ("verify" in form.dataset) {
    await showVerification(form);
    return;
  }
  try {
    report("");
    const done = await submit(form, event.submitter);
    if (!done) return;
    await render();
    report(done.text, { links: done.links });
  } catch (problem) {
    live.failed(problem);
    report(problem.message, { isProblem: true });
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
  if (!event.target.closest("[role=search]")) hideFound();
  const tab = event.target.closest(".tabs a, .strip a");
  if (tab && tab.getAttribute("href") !== location.hash && !event.ctrlKey && !event.metaKey && !event.shiftKey) isFiltering = true;
  const button = event.target.closest("button[type=button]");
  if (!button) openRow(event);
  else if ("session" in button.dataset) await askForSession();
  else if ("menu" in button.dataset) showMenu(!("menu" in document.body.dataset));
  else if ("zone" in button.dataset) switchZone();
  else if ("mark" in button.dataset) mark();
  else if ("shortcuts" in button.dataset) showShortcuts();
  else if (button.dataset.focus) document.getElementById(button.dataset.focus).focus();
  else if ("copyLink" in button.dataset) await copy(location.href, "Link copied.");
  else if (button.dataset.copy) await copy(document.getElementById(button.dataset.copy).textContent, "Copied.");
  else if (button.dataset.copySecret) await copy(button.dataset.copySecret, "Copied.");
}

function onPointerUp(event) {
  const address = endOnStrip(event);
  if (!address) return;
  isFiltering = true;
  location.hash = address;
}

function showMenu(isOpen) {
  document.body.toggleAttribute("data-menu", isOpen);
  document.getElementById("menu")?.setAttribute("aria-expanded", isOpen);
}

function switchZone() {
  zone.set(zone.get() === "utc" ? "organization" : "utc");
  prepare(page());
}

async function copy(text, success) {
  try {
    await navigator.clipboard.writeText(text);
    report(success);
  } catch {
    report("The browser allows copying only on this machine or over HTTPS. Select the text and copy it.", {
      isProblem: true,
    });
  }
}

document.addEventListener("submit", onSubmit);
document.addEventListener("change", onChange);
document.addEventListener("input", () => showValues(page()));
document.addEventListener("click", onClick);
document.addEventListener("pointerdown", beginOnStrip);
document.addEventListener("pointerup", onPointerUp);
document.addEventListener("keydown", (event) => onKey(event, { copy, mark }));
document.addEventListener("input", (event) => showFound(event, prepare));
document.addEventListener("keydown", moveInFound);
addEventListener("hashchange", openView);
setInterval(tick, 1000);
takeToken();
openView();
