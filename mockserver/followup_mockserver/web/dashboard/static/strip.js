// Draws the strip over the mock's time: a row for each kind of thing, a column for each while, and where they meet a bar.
// Its height says how many there were, and its parts what became of them. What was not sent has a mark of its own above
// it. A column is a link that selects its time. The arrow keys lead from one to the next, and a pointer that is dragged
// over several selects all of them.

import { timeText } from "./times.js";

const ROW = 28;
const TALLEST = 15; // pixels of a bar
const AXIS = 20;
const NARROWEST = 13; // pixels of a column; where there is less room, several columns are drawn as one
const TONES = ["failed", "due", "done", "advanced", "not sent"];
const STACKED = ["done", "due", "failed"]; // the parts of a bar, from below

let dragged; // the column where the pointer went down

/** Draws all strips in an element. */
export function showStrips(root, clock, timeZone) {
  for (const place of root.querySelectorAll("[data-strip]")) {
    const strip = JSON.parse(place.dataset.strip);
    const text = (at) => timeText(at * 1000, clock, timeZone, strip.step < 60);
    place.replaceChildren(...parts(strip, text));
  }
}

/** Returns the names of the rows, the chart, and below it what the shapes mean and what is selected. */
function parts(strip, text) {
  const rows = strip.rows.filter((name) => strip.marks.some(([row]) => row === name));
  const marks = strip.marks.map(([row, ...mark]) => [rows.indexOf(row), ...mark]);
  const names = html("ul", { class: "names", "aria-hidden": true }, ...rows.map((row) => html("li", {}, row)));
  return [names, chart({ ...strip, rows, marks }, text), html("div", { class: "below" }, legend(marks), selection(text))];
}

/** Returns about how many pixels the chart has: it is drawn before it is part of the page. */
function room() {
  return innerWidth > 900 ? innerWidth - 400 : innerWidth - 150;
}

function chart(strip, text) {
  const merged = Math.ceil((strip.columns * NARROWEST) / room());
  const count = Math.ceil(strip.columns / merged);
  const width = Math.min(Math.floor(room() / count) - 4, 14);
  const height = strip.rows.length * ROW;
  const begins = (column) => strip.start + column * merged * strip.step;
  const place = (column) => `${(100 * column) / count}%`;
  const label = "What happened when, and what is due";
  const drawn = svg("svg", { role: "group", height: height + AXIS, "aria-label": label, class: "chart" }, hatching());
  for (let row = 1; row <= strip.rows.length; row++) {
    drawn.append(svg("line", { x2: "100%", y1: row * ROW - 1, y2: row * ROW - 1, class: "row" }));
  }
  drawn.append(...axis(begins, count, height, text));
  const now = place((strip.now - strip.start) / strip.step / merged);
  drawn.append(svg("line", { x1: now, x2: now, y2: height, class: "now" }, svg("title", {}, "Now")));
  const found = cells(strip.marks, merged);
  const time = selected();
  const isSelected = (column) => time && begins(column) < time[1] && begins(column + 1) > time[0];
  const first = [...found.keys()].find(isSelected) ?? found.keys().next().value;
  for (const [column, cellsOfRows] of found) {
    const effects = [...cellsOfRows].map(([row, counts]) => `${strip.rows[row]}: ${sentence(counts)}`).join("; ");
    const link = svg("a", {
      "data-key": `column ${column}`,
      "data-span": `${begins(column)}..${begins(column + 1)}`,
      href: addressOf([begins(column), begins(column + 1)]),
      tabindex: column === first ? 0 : -1,
      "aria-label": `${text(begins(column))} to ${text(begins(column + 1))}. ${effects}`,
      ...(isSelected(column) && { "aria-current": true }),
    });
    link.append(svg("title", {}, link.getAttribute("aria-label")));
    link.append(svg("rect", { x: place(column), width: place(1), height, class: "column" }));
    for (const [row, counts] of cellsOfRows) {
      link.append(svg("svg", { x: place(column + 0.5), y: (row + 1) * ROW - 1, class: "cell" }, ...partsOf(counts, width)));
    }
    drawn.append(link);
  }
  return drawn;
}

/** Returns the lines and the times of the axis, at regular distances. */
function axis(begins, count, height, text) {
  const made = [];
  const every = Math.ceil((count * 130) / room()); // a text needs about 130 pixels
  for (let column = 0; column < count; column += every) {
    const x = `${(100 * column) / count}%`;
    made.push(svg("line", { x1: x, x2: x, y2: height + 5, class: "tick" }));
    // A text that begins near the edge would be cut.
    if (count - column >= every * 0.75) made.push(svg("text", { x, y: height + 15, dx: 4 }, text(begins(column))));
  }
  return made;
}

/** Returns a map of columns, in order, to maps of rows to the counts of their tones. */
function cells(marks, merged) {
  const found = new Map();
  for (const [row, column, tone, count] of marks.toSorted((one, other) => one[1] - other[1])) {
    const key = Math.floor(column / merged);
    if (!found.has(key)) found.set(key, new Map());
    const counts = found.get(key).get(row) ?? {};
    counts[tone] = (counts[tone] ?? 0) + count;
    found.get(key).set(row, counts);
  }
  return found;
}

function sentence(counts) {
  return TONES.filter((tone) => tone in counts).map((tone) => `${counts[tone]} ${tone}`).join(", ");
}

/** Returns the parts of a cell, which stands on its line: a bar, taller for more, and above it what was not sent. */
function partsOf(counts, width) {
  const made = [];
  const present = STACKED.filter((tone) => tone in counts);
  const total = present.reduce((sum, tone) => sum + counts[tone], 0);
  const height = Math.min(4 + 2.2 * Math.log2(total), TALLEST);
  let y = 0;
  for (const tone of present) {
    // A part is at least 4 pixels tall, however few there are of it.
    const part = Math.max((height * counts[tone]) / total, 4);
    y -= part;
    made.push(svg("rect", { x: -width / 2, y, width, height: part, class: `mark ${tone}` }));
  }
  if ("advanced" in counts) made.push(svg("path", { d: `M-4 ${y - 11}v10l8 -5z`, class: "mark advanced" }));
  if ("not sent" in counts) {
    const size = Math.min(width / 2, 4);
    const cross = `M${-size} ${-ROW + 4}l${2 * size} ${2 * size}m0 ${-2 * size}l${-2 * size} ${2 * size}`;
    made.push(svg("path", { d: cross, class: "mark not-sent" }));
  }
  return made;
}

/** Returns the pattern of what failed, so that it differs from the rest without colour. */
function hatching() {
  const pattern = svg("pattern", { id: "hatching", width: 4, height: 4, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" });
  pattern.append(svg("rect", { width: 4, height: 4 }), svg("line", { y2: 4 }));
  return svg("defs", {}, pattern);
}

/** Returns what the parts mean; for the eye only, since each column says it in words. */
function legend(marks) {
  const tones = TONES.filter((tone) => marks.some((mark) => mark[2] === tone));
  const items = tones.map((tone) => {
    const y = tone === "not sent" ? ROW - 14 : tone === "advanced" ? 1 : 0;
    const cell = svg("svg", { class: "cell", y }, ...partsOf({ [tone]: 16 }, 9));
    return html("span", {}, svg("svg", { viewBox: "-6 -13 12 14" }, cell), tone);
  });
  return html("p", { class: "legend", "aria-hidden": true }, ...items);
}

/** Returns the selected time, with a link to see all. */
function selection(text) {
  const time = selected();
  const made = html("p", {});
  if (time) made.append(`${text(time[0])} to ${text(time[1])} `, html("a", { href: page() }, "Show all"));
  return made;
}

const page = () => location.hash.split("?")[0] || "#/overview";

/** Returns the selected span of time from the address of the page, in seconds. */
function selected() {
  return new URLSearchParams(location.hash.split("?")[1]).get("time")?.split("..").map(Number);
}

function addressOf(time) {
  return `${page()}?${new URLSearchParams({ time: time.join("..") })}`;
}

function svg(name, attributes, ...content) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, content);
}

function html(name, attributes, ...content) {
  return fill(document.createElement(name), attributes, content);
}

function fill(element, attributes, content) {
  for (const [attribute, value] of Object.entries(attributes)) element.setAttribute(attribute, value);
  element.append(...content);
  return element;
}

/** Moves the focus by an arrow key to the next column with something in it; returns whether it did. */
export function moveOnStrip(key) {
  const columns = [...document.querySelectorAll("[data-strip] svg a")];
  const current = columns.indexOf(document.activeElement);
  const next = current < 0 ? undefined : columns[current + (key === "ArrowRight" ? 1 : -1)];
  next?.focus();
  return Boolean(next);
}

/** Remembers where the pointer went down. */
export function beginOnStrip(event) {
  dragged = event.target.closest("[data-strip] svg a");
}

/** Returns the address that selects all columns over which the pointer was dragged; null if it was not. */
export function endOnStrip(event) {
  const end = event.target.closest("[data-strip] svg a");
  if (!dragged || !end || dragged === end) return null;
  const ends = [dragged, end].flatMap(({ dataset }) => dataset.span.split("..").map(Number));
  return addressOf([Math.min(...ends), Math.max(...ends)]);
}
