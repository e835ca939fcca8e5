// Keyboard shortcuts, and rows that open where they are clicked.

import { moveOnStrip } from "./strip.js";

const ROWS = "main :is(tr, li)[data-key]:has(a[href])";
const SEQUENCE_TIME = 1500; // milliseconds between the two keys of a sequence such as "g c"

let sequenceUntil = 0;

const linkOf = (row) => row?.querySelector("a[href]");

/** Handles a key. `copy` copies a text and reports a text, and `mark` marks this moment. */
export function onKey(event, { copy, mark }) {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || document.querySelector("dialog[open]")) {
    return;
  }
  const isSequence = Date.now() < sequenceUntil;
  sequenceUntil = 0;
  if (isSequence ? openByLetter(event.key) : perform(event.key, copy, mark)) event.preventDefault();
}

function isTyping(element) {
  return element.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(element.tagName);
}

function perform(key, copy, mark) {
  switch (key) {
    case "/":
      document.getElementById("search")?.select();
      document.getElementById("search")?.focus();
      return true;
    case "?":
      showShortcuts();
      return true;
    case "g":
      sequenceUntil = Date.now() + SEQUENCE_TIME;
      return true;
    case "j":
      return moveBy(1);
    case "k":
      return moveBy(-1);
    case "ArrowLeft":
    case "ArrowRight":
      return moveOnStrip(key);
    case "c":
      return copyId(copy);
    case "m":
      mark();
      return true;
    default:
      return false;
  }
}

function openByLetter(letter) {
  const link = document.querySelector(`#views a[data-letter="${CSS.escape(letter)}"]`);
  if (link) location.hash = link.hash;
  return Boolean(link);
}

/** Moves the focus to the link of the next or previous row, so that Enter opens it. */
function moveBy(step) {
  const rows = [...document.querySelectorAll(ROWS)];
  const current = rows.indexOf(document.activeElement.closest(ROWS));
  const next = current < 0 ? (step > 0 ? 0 : rows.length - 1) : current + step;
  linkOf(rows[next])?.focus();
  rows[next]?.scrollIntoView({ block: "nearest" });
  return rows.length > 0;
}

function copyId(copy) {
  const link = linkOf(document.activeElement.closest(ROWS));
  const id = (link?.hash ?? location.hash).split("?")[0].split("/")[2];
  if (id) copy(id, `Copied ${id}.`);
  return Boolean(id);
}

/** Opens the row that was clicked, unless the click was on something else in it or selected text. */
export function openRow(event) {
  const row = event.target.closest("main tr[data-key]");
  const isOwnTarget = event.target.closest("a, button, input, select, textarea, label, summary, pre");
  const isPlain = event.button === 0 && !event.defaultPrevented && !event.shiftKey;
  if (!row || isOwnTarget || !isPlain || !getSelection().isCollapsed) return;
  const link = linkOf(row);
  if (!link) return;
  if (event.ctrlKey || event.metaKey) open(link.href, "_blank", "noopener");
  else location.hash = link.hash;
}

/** Shows the list of shortcuts; the letters of the views are those of the navigation. */
export function showShortcuts() {
  const views = [...document.querySelectorAll("#views a[data-letter]")].map((link) => {
    const item = document.createElement("div");
    const [keys, title] = [document.createElement("dt"), document.createElement("dd")];
    for (const key of ["g", link.dataset.letter]) {
      keys.append(Object.assign(document.createElement("kbd"), { textContent: key }), " ");
    }
    title.textContent = link.firstChild.data.trim();
    item.append(keys, title);
    return item;
  });
  document.getElementById("shortcuts-views").replaceChildren(...views);
  document.getElementById("shortcuts").showModal();
}
