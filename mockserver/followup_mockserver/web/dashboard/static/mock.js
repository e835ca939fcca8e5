// Requests to the mock: calls of the control API, and the views of this page.

const ROOT = new URL("../", import.meta.url);

/** The API key, the token, and what this tab knows of the mock's data. They are kept in this tab only. */
export const session = {
  get: (name) => sessionStorage.getItem(name) || "",
  set: (name, value) => sessionStorage.setItem(name, value),
};

/** The mock rejected a request. `code` is the error code in the service's error format. */
export class Rejected extends Error {
  constructor(error) {
    super(error.param && error.param !== "id" ? `${error.param}: ${error.message}` : error.message);
    this.code = error.code;
  }
}

/** The mock did not respond. */
export class Unreachable extends Error {
  constructor() {
    super("The mock does not respond.");
  }
}

/** Calls the control API; resolves to the JSON of the response. */
export async function call(method, path, body) {
  const options = { method };
  if (body !== undefined) {
    options.headers = { "Content-Type": "application/json" };
    options.body = JSON.stringify(body);
  }
  return (await send(path.replace(/^\//, ""), options)).json();
}

/** Fetches a view; resolves to the element with the whole page. An unknown view is a page as well, with a 404. */
export async function fetchView(path, signal) {
  const response = await send(`views/${path}`, { signal });
  return new DOMParser().parseFromString(await response.text(), "text/html").getElementById("page");
}

/** Waits until the state of the mock has another version than this one, or for 20 s; resolves to its version. */
export async function fetchVersion(since, signal) {
  const response = await send(`changes?since=${since}&wait=20`, { signal });
  return (await response.json()).version;
}

async function send(path, options) {
  const headers = { ...options.headers };
  if (session.get("token")) headers["Mock-Token"] = session.get("token");
  if (session.get("key")) headers.Authorization = `Bearer ${session.get("key")}`;
  const response = await fetch(new URL(path, ROOT), { ...options, headers, cache: "no-store" }).catch((problem) => {
    throw problem instanceof TypeError ? new Unreachable() : problem; // fetch raises it when there is no response
  });
  const isPage = response.headers.get("Content-Type")?.startsWith("text/html");
  if (!response.ok && !isPage) throw new Rejected(await errorOf(response));
  return response;
}

async function errorOf(response) {
  try {
    return (await response.json()).error;
  } catch {
    return { message: `The mock responded with ${response.status}.` };
  }
}
