// Runs Python beside the page, so that the page responds while Python works. One call after the other.

import { loadPyodide } from "./pyodide/pyodide.mjs";

const files = (name) => new URL(name, import.meta.url);

/** Reports how many bytes of files have been loaded, of all that is fetched until Python has started. */
const fetched = globalThis.fetch;
let loaded = 0;
globalThis.fetch = async (...request) => {
  const response = await fetched(...request);
  const count = new TransformStream({
    transform(bytes, controller) {
      loaded += bytes.length;
      postMessage({ loaded });
      controller.enqueue(bytes);
    },
  });
  const { status, statusText, headers } = response;
  return new Response(response.body?.pipeThrough(count), { status, statusText, headers });
};

async function start() {
  const [python, packages] = await Promise.all([
    loadPyodide({ indexURL: files("pyodide/").href }),
    fetch(files("packages.zip")).then((response) => response.arrayBuffer()),
  ]);
  python.unpackArchive(packages, "zip");
  await python.runPythonAsync(await (await fetch(files("start.py"))).text());
  return python;
}

const calls = {
  start: () => undefined,
  respond: (python, ...request) => JSON.parse(python.globals.get("_respond")(...request)),
  view: (python, name) => python.globals.get("_view")(name),
  async run(python, code) {
    const printed = [];
    python.setStdout({ batched: (line) => printed.push(line) });
    python.setStderr({ batched: (line) => printed.push(line) });
    try {
      const value = await python.runPythonAsync(code, { filename: "<editor>" });
      if (value !== undefined) printed.push(python.globals.get("repr")(value));
      return printed.join("\n");
    } catch (error) {
      throw new Error([...printed, ownPart(error.message)].join("\n"));
    }
  },
};

/** Leaves out the frames that are not of the reader's code, and advice to install what this page cannot install. */
function ownPart(traceback) {
  return traceback
    .slice(Math.max(0, traceback.indexOf('  File "<editor>"')))
    .replace(/^  File "(?!<editor>").*\n(?:  [ [].*\n)*/gm, "")
    .replace(/^The module '.*' is included in the Pyodide distribution[^]*? for more details\.$/m, "")
    .trimEnd();
}

// The page shows why it did not start, and not the traceback.
const started = start().catch((error) => {
  throw new Error(error.message.trimEnd().split("\n").at(-1));
});
let last = started;
addEventListener("message", ({ data: { id, name, values } }) => {
  const result = last.then(() => started).then((python) => calls[name](python, ...values));
  last = result.catch(() => undefined);
  result.then(
    (value) => postMessage({ id, value }),
    (error) => postMessage({ id, problem: error.message }),
  );
});
