// The search of the documentation: ranks the sections of search_index.js, and shows the best pages as the reader types,
// below the field of each page and on the page of the search.
"use strict";

const RARELY_MEANT = new Set(`
  a an and are as at be by can do does for from get have how i if in is it its me my not of on or so that the this to use was
  we what when where which why will with you your`.trim().split(/\s+/));
const MOST_PAGES = 12;
const MOST_BELOW_THE_FIELD = 7;
const MOST_SECTIONS = 3;
const LITTLE = 24; // the weight at which a word counts half as much as it can

const folded = (text) => text.toLowerCase().normalize("NFD").replace(/\p{M}/gu, "");

// Endings of English words, so that "retry", "retries" and "retried" are one word.
const stem = (word) => /^[a-z]{4,}$/.test(word)
  ? word.replace(/(ied|ies)$/, "y").replace(/(?<=[a-z]{3})(ing|ed|es|s)$/, "").replace(/e$/, "").replace(/([^aeiou])\1$/, "$1")
  : word;

function wordsOf(query) {
  const all = folded(query).match(/[\p{L}\p{N}_.]*[\p{L}\p{N}_]/gu) ?? [];
  const meant = all.filter((word) => !RARELY_MEANT.has(word));
  return [...new Set(meant.length ? meant : all)];
}

// The postings of each stem, and the length of each section in proportion to the average.
function prepared(index) {
  const stems = new Map();
  const lengths = index.sections.map(() => 0);
  for (const [word, postings] of Object.entries(index.words)) {
    const found = stems.get(stem(word));
    if (found) found.push(postings); else stems.set(stem(word), [postings]);
    for (let at = 0; at < postings.length; at += 2) lengths[postings[at]] += postings[at + 1];
  }
  const average = lengths.reduce((sum, each) => sum + each, 0) / lengths.length;
  return { ...index, stems, lengths: lengths.map((each) => each / average) };
}

function weightsOf(index, word) {
  const weights = new Map();
  const add = (lists, factor) => {
    for (const postings of lists ?? []) {
      for (let at = 0; at < postings.length; at += 2) {
        weights.set(postings[at], (weights.get(postings[at]) ?? 0) + factor * postings[at + 1]);
      }
    }
  };
  add(index.stems.get(stem(word)), 1);
  if (word.length > 2) {
    for (const [known, lists] of index.stems) {
      if (known.startsWith(stem(word)) && known !== stem(word)) add(lists, 0.3);
    }
  }
  return weights;
}

// Rare words count more, repetitions less and less, and a section with all words counts most.
function scoresOf(index, words) {
  const scores = new Map();
  for (const word of words) {
    const weights = weightsOf(index, word);
    const rarity = Math.log(1 + index.sections.length / (1 + weights.size));
    for (const [section, weight] of weights) {
      const score = scores.get(section) ?? { sum: 0, words: 0 };
      scores.set(section, { sum: score.sum + rarity * weight / (weight + LITTLE * (0.4 + 0.6 * index.lengths[section])), words: score.words + 1 });
    }
  }
  return [...scores].map(([section, { sum, words: found }]) => [section, sum * (found / words.length) ** 2]);
}

function ranked(index, query) {
  const words = wordsOf(query);
  const pages = new Map();
  const best = scoresOf(index, words).sort(([, one], [, other]) => other - one);
  for (const [section, score] of best) {
    const [page, anchor, heading, excerpt] = index.sections[section];
    const [url, title, importance, kind] = index.pages[page];
    const found = pages.get(page) ?? { url, title, kind, score: 0, sections: [] };
    found.score += importance * score * 0.25 ** found.sections.length;
    found.sections.push({ url: `${url}#${anchor}`, heading, excerpt });
    pages.set(page, found);
  }
  return [...pages.values()].sort((one, other) => other.score - one.score).slice(0, MOST_PAGES);
}

// How many letters have to be changed, up to a limit.
function difference(one, other, limit) {
  if (Math.abs(one.length - other.length) > limit) return limit + 1;
  let last = Array.from({ length: other.length + 1 }, (_, position) => position);
  for (let row = 1; row <= one.length; row += 1) {
    const next = [row];
    for (let at = 1; at <= other.length; at += 1) {
      next.push(Math.min(last[at] + 1, next[at - 1] + 1, last[at - 1] + (one[row - 1] === other[at - 1] ? 0 : 1)));
    }
    last = next;
  }
  return last.at(-1);
}

// The words of the query that no page has, each with the word of a page that is most like it.
function missing(index, query) {
  return wordsOf(query).filter((word) => weightsOf(index, word).size === 0).map((word) => {
    const limit = word.length > 5 ? 2 : 1;
    const like = Object.entries(index.words)
      .map(([known, postings]) => [known, difference(word, known, limit), postings.length])
      .filter(([known, changed]) => changed <= limit && /^[a-z]{4,}$/.test(known));
    like.sort((one, other) => one[1] - other[1] || other[2] - one[2]);
    return [word, like[0]?.[0]];
  });
}

const DOORS = ["first test", "receive webhooks", "reminder not sent", "import a file"];

function element(name, attributes, ...children) {
  const made = Object.assign(document.createElement(name), attributes);
  made.append(...children);
  return made;
}

const root = () => document.documentElement.dataset.content_root ?? "./";

// The theme highlights the words on the page, wherever they begin with these.
function address(url, query) {
  const [page, anchor] = url.split("#");
  return `${root()}${page}?highlight=${encodeURIComponent(wordsOf(query).map(stem).join(" "))}${anchor ? `#${anchor}` : ""}`;
}

function shown({ url, title, kind, sections }, query, mostSections) {
  const item = element("li", {}, element("h2", {}, element("a", { href: address(url, query) }, title)));
  item.append(element("span", { className: "search-kind" }, kind));
  for (const section of sections.slice(0, mostSections)) {
    const link = element("a", { href: address(section.url, query) }, section.heading);
    const heading = section.heading === title ? [] : [link, " "];
    item.append(element("p", {}, ...heading, section.excerpt));
  }
  return item;
}

// What is said above the results: their number, or what could be searched for instead.
function said(index, query, found) {
  const lacking = missing(index, query);
  const links = (queries) => queries.flatMap((each, position) =>
    [position ? ", " : "", element("a", { href: `${root()}search.html?q=${encodeURIComponent(each)}` }, each)]);
  const none = lacking.length ? [`No page has ${lacking.map(([word]) => `“${word}”`).join(" or ")}. `] : [];
  if (found.length) none.push(`${found.length} pages, the best first.`);
  const corrected = lacking.some(([, like]) => like)
    ? [lacking.reduce((text, [word, like]) => like ? text.replace(word, like) : text, folded(query))] : [];
  if (!corrected.length && found.length) return none;
  return [...none, " Try: ", ...links(corrected.length ? corrected : DOORS)];
}

let loading;

// The index is large, so it is loaded when a reader begins to search.
function loaded() {
  loading ??= new Promise((resolve, reject) => {
    const script = element("script", { src: `${root()}_static/search_index.js`, onerror: reject });
    script.onload = () => resolve(prepared(globalThis.searchIndex));
    document.head.append(script);
  });
  return loading;
}

// Shows results while the reader types, among which the arrow keys move.
function connect(input, status, results, mostPages, mostSections, after) {
  const update = async () => {
    const query = input.value.trim();
    const index = await loaded();
    if (query !== input.value.trim()) return; // the reader has typed on
    const found = query ? ranked(index, query).slice(0, mostPages) : [];
    results.replaceChildren(...found.map((page) => shown(page, query, mostSections)));
    status.replaceChildren(...(query ? said(index, query, found) : []));
    after(query);
  };
  const move = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const links = [input, ...results.querySelectorAll("h2 a")];
    const at = links.indexOf(document.activeElement.closest("li")?.querySelector("h2 a") ?? input);
    if (!step || !links[at + step]) return;
    event.preventDefault();
    links[at + step].focus();
  };
  input.addEventListener("input", update);
  input.addEventListener("keydown", move);
  results.addEventListener("keydown", move);
  return update;
}

function connectPage(input) {
  const status = document.getElementById("search-status");
  const results = document.getElementById("search-results");
  const update = connect(input, status, results, MOST_PAGES, MOST_SECTIONS, (query) => {
    history.replaceState(null, "", query ? `?q=${encodeURIComponent(query)}` : location.pathname);
  });
  input.value = new URLSearchParams(location.search).get("q") ?? "";
  document.getElementById("search-form").addEventListener("submit", (event) => event.preventDefault());
  update();
  input.focus();
}

function connectSidebar(input) {
  const status = element("p", {});
  status.setAttribute("role", "status");
  const results = element("ol", {});
  const box = element("div", { className: "search-found", hidden: true }, status, results);
  input.form.after(box);
  input.autocomplete = "off";
  const place = (query) => {
    const field = input.getBoundingClientRect();
    box.style.top = `${field.bottom}px`;
    box.style.maxHeight = `${innerHeight - field.bottom - 16}px`;
    box.hidden = !query;
  };
  connect(input, status, results, MOST_BELOW_THE_FIELD, 1, place);
  const close = (event) => {
    if (event.key === "Escape" || (event.type === "pointerdown" && !box.contains(event.target))) box.hidden = true;
  };
  input.addEventListener("focus", loaded);
  document.addEventListener("keydown", close);
  document.addEventListener("pointerdown", close);
}

function start() {
  const page = document.getElementById("search-query");
  if (page) connectPage(page);
  document.querySelectorAll(".sidebar-search").forEach(connectSidebar);
}

if (typeof document === "undefined") {
  const index = prepared(globalThis.searchIndex);
  globalThis.search = (query) => ranked(index, query);
  globalThis.lacking = (query) => missing(index, query);
} else start();
