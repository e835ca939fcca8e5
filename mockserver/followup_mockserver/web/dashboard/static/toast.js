// A short report of what has just been done. It disappears after a while, but not under the pointer or with the focus.

const SHOWN_FOR = 8000; // milliseconds
const PROBLEM_SHOWN_FOR = 20000;

const toast = document.getElementById("toast");
let timer;
let shownFor;

/** Shows a report, with links as pairs of text and address; an empty text removes the current one. */
export function report(text, { isProblem = false, links = [] } = {}) {
  document.getElementById("toast-text").textContent = text;
  document.getElementById("toast-links").replaceChildren(...links.map(linkOf));
  toast.classList.toggle("problem", isProblem);
  shownFor = isProblem ? PROBLEM_SHOWN_FOR : SHOWN_FOR;
  startTimer();
}

function linkOf([text, address]) {
  return Object.assign(document.createElement("a"), { textContent: text, href: address });
}

function startTimer() {
  stopTimer();
  timer = setTimeout(() => report(""), shownFor);
}

function stopTimer() {
  clearTimeout(timer);
}

toast.addEventListener("pointerenter", stopTimer);
toast.addEventListener("focusin", stopTimer);
toast.addEventListener("pointerleave", startTimer);
toast.addEventListener("focusout", startTimer);
toast.querySelector("button").addEventListener("click", () => report(""));
