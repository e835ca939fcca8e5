// Draws the strip over the mock's time: a row for each kind of thing, a column for each while, and where they meet the
// shape of what happened. A column is a link that selects its time. The arrow keys lead from one to the next, and a
// pointer that is dragged over several selects all of them.

import { timeText } from "./times.js";

const ROW = 22;
const AXIS = 20;
const NARROW = 640; // pixels of the window, below which three columns are drawn as one
const SHAPES = {
  failed: (size) => ["path", { d: `M0 ${-size}L${size} ${size}H${-size}Z` }],
  advanced: (size) => ["path", { d: `M${size} 0L${-size} ${size}V${-size}Z` }],
  due: (size) => ["circle", { r: size - 0.75 }],
  done: (size) => ["rect", { x: -size, y: -size, width: 2 * size, height: 2 * size }],
  "not sent": (size) => ["rect", { x: -size - 1, y: -1, width: 2 * size + 2, height: 2 }],
};
const TONES = Object.keys(SHAPES); // where several meet, the first of them gives the shape

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

function chart(strip, text) {
  const merged = innerWidth > NARROW ? 1 : 3;
  const count = Math.ceil(strip.columns / merged);
  const height = strip.rows.length * ROW;
  const at = (column) => strip.start + column * merged * strip.step;
  const place = (column) => `${(100 * column) / count}%`;
  const label = "What happened when, and what is due";
  const drawn = svg("svg", { role: "group", height: height + AXIS, "aria-label": label, class: "chart" });
  for (let row = 0; row < strip.rows.length; row++) {
    drawn.append(svg("line", { x2: "100%", y1: (row + 0.5) * ROW, y2: (row + 0.5) * ROW, class: "row" }));
  }
  const every = Math.ceil(count / (merged === 1 ? 6 : 2));
  for (let column = 0; column < count; column += every) {
    drawn.append(svg("line", { x1: place(column), x2: place(column), y2: height + 5, class: "tick" }));
    if (count - column < every * 0.75) continue; // the text would be cut at the edge
    drawn.append(svg("text", { x: place(column), dx: 4, y: height + 15 }, text(at(column))));
  }
  const now = place((strip.now - strip.start) / strip.step / merged);
  drawn.append(svg("line", { x1: now, x2: now, y2: height, class: "now" }, svg("title", {}, "Now")));
  const found = cells(strip.marks, merged);
  const time = selected("time");
  const isSelected = (column) => time && at(column) < time[1] && at(column + 1) > time[0];
  const first = [...found.keys()].find(isSelected) ?? found.keys().next().value;
  for (const [column, cellsOfRows] of found) {
    const effects = [...cellsOfRows].map(([row, counts]) => `${strip.rows[row]}: ${sentence(counts)}`).join("; ");
    const link = svg("a", {
      "data-key": `column ${column}`,
      "data-span": `${at(column)}..${at(column + 1)}`,
      href: addressOf({ time: [at(column), at(column + 1)] }),
      tabindex: column === first ? 0 : -1,
      "aria-label": `${text(at(column))} to ${text(at(column + 1))}. ${effects}`,
      ...(isSelected(column) && { "aria-current": true }),
    });
    link.append(svg("title", {}, link.getAttribute("aria-label")));
    link.append(svg("rect", { x: place(column), width: place(1), height, class: "column" }));
    for (const [row, counts] of cellsOfRows) {
      link.append(svg("svg", { x: place(column + 0.5), y: (row + 0.5) * ROW, class: "cell" }, shapeOf(counts)));
    }
    drawn.append(link);
  }
  return drawn;
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

/** Returns the shape of the most urgent tone, larger for more. */
function shapeOf(counts) {
  const tone = TONES.find((each) => each in counts);
  return shape(tone, Math.min(4 + Math.log2(counts[tone]), 9));
}

function shape(tone, size) {
  const [name, attributes] = SHAPES[tone](size);
  return svg(name, { ...attributes, class: `mark ${tone.replace(" ", "-")}` });
}

/** Returns what the shapes mean; for the eye only, since each column says it in words. */
function legend(marks) {
  const tones = TONES.filter((tone) => marks.some((mark) => mark[2] === tone));
  const items = tones.map((tone) => html("span", {}, svg("svg", {}, shape(tone, 5)), tone));
  return html("p", { class: "legend", "aria-hidden": true }, ...items);
}

/** Returns the selected time, with links to see more or less. */
function selection(text) {
  const time = selected("time");
  const made = html("p", {});
  if (time) {
    const length = time[1] - time[0];
    const window = [Math.max(time[0] - 5 * length, 0), time[1] + 5 * length];
    made.append(`${text(time[0])} to ${text(time[1])} `, html("a", { href: addressOf({ window, time }) }, "Zoom in"), " ");
  }
  if (time || selected("window")) made.append(html("a", { href: page() }, "Show all"));
  return made;
}

const page = () => location.hash.split("?")[0] || "#/overview";

/** Returns a span of time from the address of the page, in seconds. */
function selected(name) {
  const value = new URLSearchParams(location.hash.split("?")[1]).get(name);
  return value && value.split("..").map(Number);
}

function addressOf({ window = selected("window"), time }) {
  const query = { ...(window && { window: window.join("..") }), time: time.join("..") };
  return `${page()}?${new URLSearchParams(query)}`;
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
  return addressOf({ time: [Math.min(...ends), Math.max(...ends)] });
}
