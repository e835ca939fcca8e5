// A line about what has just been done. It goes away by itself, unless somebody reads it, and can be closed.

const SHOWN_FOR = 8000; // milliseconds
const PROBLEM_SHOWN_FOR = 20000;

const toast = document.getElementById("toast");
let timer;
let shownFor;

/** Reports something; an empty text takes the last report away. */
export function tell(text, isProblem = false) {
  document.getElementById("told").textContent = text;
  toast.classList.toggle("problem", isProblem);
  shownFor = isProblem ? PROBLEM_SHOWN_FOR : SHOWN_FOR;
  restart();
}

function restart() {
  clearTimeout(timer);
  timer = setTimeout(() => tell(""), shownFor);
}

const wait = () => clearTimeout(timer);

toast.addEventListener("pointerenter", wait);
toast.addEventListener("focusin", wait);
toast.addEventListener("pointerleave", restart);
toast.addEventListener("focusout", restart);
toast.querySelector("button").addEventListener("click", () => tell(""));
