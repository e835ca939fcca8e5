// Updates a part of the page in place. Only what differs is changed, so that typed text, the focus and the scroll
// position survive a live update.

/** Makes `current` equal to `fresh`, whose nodes may be moved into the page. */
export function morph(current, fresh) {
  if (!corresponds(current, fresh)) {
    current.replaceWith(fresh);
  } else if (current.nodeType === Node.ELEMENT_NODE) {
    if ("own" in current.dataset) return; // a script of the page wrote its content
    copyAttributes(current, fresh);
    morphChildren(current, fresh);
  } else if (current.data !== fresh.data) {
    current.data = fresh.data;
  }
}

function morphChildren(current, fresh) {
  const byKey = new Map([...current.children].filter(keyOf).map((child) => [keyOf(child), child]));
  let next = current.firstChild;
  for (const child of [...fresh.childNodes]) {
    const match = keyOf(child) ? byKey.get(keyOf(child)) : next;
    if (!match || !corresponds(match, child)) {
      current.insertBefore(child, next);
      continue;
    }
    if (match === next) {
      next = next.nextSibling;
    } else {
      current.insertBefore(match, next);
    }
    morph(match, child);
  }
  while (next) {
    const removed = next;
    next = next.nextSibling;
    removed.remove();
  }
}

function corresponds(one, other) {
  return one.nodeName === other.nodeName && keyOf(one) === keyOf(other);
}

function keyOf(node) {
  return node.nodeType === Node.ELEMENT_NODE ? node.dataset.key || node.id || "" : "";
}

function copyAttributes(current, fresh) {
  for (const { name } of [...current.attributes]) {
    // The server never sends `open`: the user opened this <details>, and it stays open.
    if (name !== "open" && !fresh.hasAttribute(name)) current.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (current.getAttribute(name) !== value) current.setAttribute(name, value);
  }
}
