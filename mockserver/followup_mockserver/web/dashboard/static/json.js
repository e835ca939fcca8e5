// Colours JSON. Its characters stay the same, so that it can be selected, copied and searched, and it need not be
// complete: a truncated body is coloured as far as it goes.

const TOKEN = /(?<string>"(?:[^"\\]|\\.)*")(?<colon>\s*:)?|(?<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|\b(?:true|false|null)\b/g;

/** Colours the tokens of all JSON in an element. */
export function colourJson(root) {
  for (const place of root.querySelectorAll("pre[data-json]")) {
    const text = place.textContent;
    if (/^\s*[{[]/.test(text)) place.replaceChildren(...coloured(text));
  }
}

function* coloured(text) {
  let end = 0;
  for (const { 0: token, index, groups } of text.matchAll(TOKEN)) {
    const kind = groups.string ? (groups.colon ? "key" : "string") : groups.number ? "number" : "literal";
    const coloured = document.createElement("span");
    coloured.className = `json-${kind}`;
    coloured.textContent = groups.string ?? token;
    yield text.slice(end, index);
    yield coloured;
    end = index + coloured.textContent.length;
  }
  yield text.slice(end);
}
