// The search of the documentation: ranks the sections of search_index.js, and shows the best pages as the reader types.
"use strict";

const RARELY_MEANT = new Set(`
  a an and are as at be by can do does for from get have how i if in is it its me my not of on or so that the this to use was
  we what when where which why will with you your`.trim().split(/\s+/));
const MOST_PAGES = 12;
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
    const [url, title, importance] = index.pages[page];
    const found = pages.get(page) ?? { url, title, score: 0, sections: [] };
    found.score += importance * score * 0.25 ** found.sections.length;
    found.sections.push({ url: `${url}#${anchor}`, heading, excerpt });
    pages.set(page, found);
  }
  return [...pages.values()].sort((one, other) => other.score - one.score).slice(0, MOST_PAGES);
}

function element(name, attributes, ...children) {
  const made = Object.assign(document.createElement(name), attributes);
  made.append(...children);
  return made;
}

function shown({ url, title, sections }) {
  const link = element("a", { href: url }, title);
  const item = element("li", {}, element("h2", {}, link));
  for (const section of sections.slice(0, MOST_SECTIONS)) {
    const heading = section.heading === title ? [] : [element("a", { href: section.url }, section.heading), " "];
    item.append(element("p", {}, ...heading, section.excerpt));
  }
  return item;
}

function start() {
  const index = prepared(globalThis.searchIndex);
  const input = document.getElementById("search-query");
  const status = document.getElementById("search-status");
  const results = document.getElementById("search-results");
  const update = () => {
    const found = input.value.trim() ? ranked(index, input.value) : [];
    results.replaceChildren(...found.map(shown));
    const nothing = input.value.trim() ? "Nothing found. Try fewer or other words." : "";
    status.textContent = found.length ? `${found.length} pages, the best first` : nothing;
    history.replaceState(null, "", input.value ? `?q=${encodeURIComponent(input.value)}` : location.pathname);
  };
  input.value = new URLSearchParams(location.search).get("q") ?? "";
  input.addEventListener("input", update);
  document.getElementById("search-form").addEventListener("submit", (event) => event.preventDefault());
  update();
  input.focus();
}

if (typeof document === "undefined") globalThis.search = (query) => ranked(prepared(globalThis.searchIndex), query);
else start();
