// Talks to the mock: the control API, and the views of this page. The key and the token stay in this tab.

const ROOT = new URL("../", import.meta.url);

export const session = {
  get: (name) => sessionStorage.getItem(name) || "",
  set: (name, value) => sessionStorage.setItem(name, value),
};

/** The mock rejected a request: `code` says why, as in the service's error format. */
export class Rejected extends Error {
  constructor(problem) {
    super(problem.param && problem.param !== "id" ? `${problem.param}: ${problem.message}` : problem.message);
    this.code = problem.code;
  }
}

/** A call of the control API; the result is its JSON. */
export async function call(method, path, body) {
  const options = { method };
  if (body !== undefined) {
    options.headers = { "Content-Type": "application/json" };
    options.body = JSON.stringify(body);
  }
  return (await send(path.replace(/^\//, ""), options)).json();
}

/** A view, as the element that holds the whole page. One that is not there is a page too, which says so. */
export async function view(path, signal) {
  const answer = await send(`views/${path}`, { signal });
  return new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("page");
}

/** Resolves once there is another version than this one, or after a while. */
export async function changed(version, signal) {
  const answer = await send(`changes?since=${version}&wait=20`, { signal });
  return (await answer.json()).version;
}

async function send(path, options) {
  const headers = { ...options.headers };
  if (session.get("token")) headers["Mock-Token"] = session.get("token");
  if (session.get("key")) headers.Authorization = `Bearer ${session.get("key")}`;
  const answer = await fetch(new URL(path, ROOT), { ...options, headers, cache: "no-store" });
  const isPage = answer.headers.get("Content-Type")?.startsWith("text/html");
  if (!answer.ok && !isPage) throw new Rejected(await problemOf(answer));
  return answer;
}

async function problemOf(answer) {
  try {
    return (await answer.json()).error;
  } catch {
    return { message: `The mock responded with ${answer.status}.` };
  }
}
