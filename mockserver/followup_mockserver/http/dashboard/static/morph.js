// Makes one piece of a page like another one, and touches only what differs: what somebody reads, types or has the
// focus on stays where it is while the page is kept up to date.

/** Makes `shown` like `fresh`, which is used up. */
export function morph(shown, fresh) {
  if (!alike(shown, fresh)) {
    shown.replaceWith(fresh);
  } else if (shown.nodeType === Node.ELEMENT_NODE) {
    copyAttributes(shown, fresh);
    morphChildren(shown, fresh);
  } else if (shown.data !== fresh.data) {
    shown.data = fresh.data;
  }
}

function morphChildren(shown, fresh) {
  const byKey = new Map([...shown.children].filter(keyOf).map((child) => [keyOf(child), child]));
  let next = shown.firstChild;
  for (const child of [...fresh.childNodes]) {
    const match = keyOf(child) ? byKey.get(keyOf(child)) : next;
    if (!match || !alike(match, child)) {
      shown.insertBefore(child, next);
      continue;
    }
    if (match === next) {
      next = next.nextSibling;
    } else {
      shown.insertBefore(match, next);
    }
    morph(match, child);
  }
  while (next) {
    const gone = next;
    next = next.nextSibling;
    gone.remove();
  }
}

function alike(one, other) {
  return one.nodeName === other.nodeName && keyOf(one) === keyOf(other);
}

function keyOf(node) {
  return node.nodeType === Node.ELEMENT_NODE ? node.dataset.key || node.id || "" : "";
}

function copyAttributes(shown, fresh) {
  for (const { name } of [...shown.attributes]) {
    // What somebody has opened stays open.
    if (name !== "open" && !fresh.hasAttribute(name)) shown.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (shown.getAttribute(name) !== value) shown.setAttribute(name, value);
  }
}
