// A short report of what has just been done. It disappears after a while, but not under the pointer or with the focus.

const SHOWN_FOR = 8000; // milliseconds
const PROBLEM_SHOWN_FOR = 20000;

const toast = document.getElementById("toast");
let timer;
let shownFor;

/** Shows a report; an empty text removes the current one. */
export function report(text, isProblem = false) {
  document.getElementById("toast-text").textContent = text;
  toast.classList.toggle("problem", isProblem);
  shownFor = isProblem ? PROBLEM_SHOWN_FOR : SHOWN_FOR;
  startTimer();
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
