// Starts and controls a mock for a test suite in JavaScript. Needs "followup-mock" on the path.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

/** Start a mock on a free port, with the options of "followup-mock serve". */
export async function startMock(...options) {
  const command = (process.env.FOLLOWUP_MOCK ?? "followup-mock").split(" ");
  const server = spawn(command[0], [...command.slice(1), "serve", "--port", "0", ...options], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const printed = {};
  for await (const line of createInterface(server.stdout)) {
    const [, name, value] = /^(\S.*?) {2,}(\S+)$/.exec(line) ?? [];
    printed[name] = value;
    if (name === "contract") break; // the last line: the mock is ready
  }
  if (!printed["base URL"]) throw new Error("followup-mock did not start");
  const stop = async () => {
    server.kill();
    await once(server, "exit");
  };
  return { url: printed["base URL"], key: printed["API key"], stop };
}

/** Return a function that calls the API, or the control API under /_mock, with this key. */
export function caller(url, key) {
  return async (method, path, body, headers = {}) => {
    const response = await fetch(url + path, {
      method,
      headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json", ...headers },
      body: body && JSON.stringify(body),
    });
    const result = await response.json();
    if (response.ok) return result;
    const error = new Error(result.error.message);
    throw Object.assign(error, { status: response.status, ...result.error });
  };
}

/** Return the caller of a new organization, which has its own data, clock and faults. */
export async function newOrganization(mock) {
  const { keys } = await caller(mock.url, mock.key)("POST", "/_mock/organizations", {});
  return caller(mock.url, keys[0].value);
}
