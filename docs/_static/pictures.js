// Lets the keyboard scroll a picture that is wider than a narrow screen.
"use strict";

addEventListener("load", () => {
  for (const each of document.querySelectorAll(".picture")) {
    if (each.scrollWidth > each.clientWidth) each.tabIndex = 0;
  }
});
