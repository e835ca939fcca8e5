// The first results of the search, while the user types.

import { fetchView } from "./mock.js";

const SHORTEST = 3; // characters
const MOST = 8; // results
const PAUSE = 200; // milliseconds without a key, after which the mock is asked

let timer;
let request = new AbortController();

const place = () => document.querySelector("[role=search] .found");

export function hideFound() {
  clearTimeout(timer);
  request.abort();
  if (place()) place().hidden = true;
}

/** Shows the results for what was typed into the field of the search. `prepare` completes a page of the mock. */
export function showFound({ target }, prepare) {
  if (target.id !== "search") return;
  hideFound();
  const text = target.value.trim();
  if (text.length >= SHORTEST) timer = setTimeout(show, PAUSE, text, prepare);
}

async function show(text, prepare) {
  request = new AbortController();
  const { signal } = request;
  const view = await fetchView(`search?${new URLSearchParams({ q: text })}`, signal).catch(() => null);
  if (!view || !place() || signal.aborted) return;
  prepare(view);
  const rows = [...view.querySelectorAll("main tr[data-key]")].slice(0, MOST);
  if (!rows.length) return;
  place().replaceChildren(...rows.map(linkOf));
  place().hidden = false;
}

function linkOf(row) {
  const link = row.querySelector("a");
  const facts = [...row.querySelectorAll(".at-detail, .at-note")].map((cell) => cell.textContent.trim()).filter(Boolean);
  const shown = Object.assign(document.createElement("a"), { href: link.getAttribute("href"), textContent: link.textContent });
  shown.append(Object.assign(document.createElement("span"), { textContent: facts.join(", ") }));
  return shown;
}

/** Moves by the arrow keys between the field and its results, and hides them with Escape. */
export function moveInFound(event) {
  const form = event.target.closest?.("[role=search]");
  if (!form || place().hidden) return;
  if (event.key === "Escape") hideFound();
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
  const stops = [form.querySelector("input"), ...place().children];
  stops[stops.indexOf(event.target) + (event.key === "ArrowDown" ? 1 : -1)]?.focus();
  event.preventDefault();
}
