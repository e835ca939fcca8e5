// Plays the cases of this folder against a mock: node run.mjs URL [--specification-only] [FILE…]
// README.md describes their format. Node 20 or newer.
import { createHmac } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { createServer } from "node:http";
import { isDeepStrictEqual } from "node:util";

const [url, ...named] = process.argv.slice(2).filter((each) => !each.startsWith("--"));
const options = process.argv.slice(2).filter((each) => each.startsWith("--"));
const specificationOnly = options.includes("--specification-only");
if (!/^https?:/.test(url) || options.some((each) => each !== "--specification-only")) {
  console.error("usage: node run.mjs URL [--specification-only] [FILE…]");
  process.exit(2);
}
const files = readdirSync(new URL(".", import.meta.url)).filter((name) => name.endsWith(".json")).sort();
const errorTypes = { 401: "authentication_error", 403: "permission_error", 429: "rate_limit_error", 500: "api_error" };
const units = { days: 86400, hours: 3600, minutes: 60, seconds: 1 };
const absent = Symbol("absent");
let received, statuses, responded, names, secrets;

const receiver = createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const target = `http://${request.headers.host}${request.url}`;
  received.push({ target, headers: request.headers, content: Buffer.concat(chunks) });
  const status = target.startsWith(names.receiver) ? statuses[Math.min(responded++, statuses.length - 1)] : 204;
  response.writeHead(status, status >= 300 && status < 400 ? { Location: target } : {}).end();
});

function fail(message) {
  throw new Error(message);
}

function filled(value) {
  if (Array.isArray(value)) return value.map(filled);
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [filled(name), filled(each)]));
  }
  if (typeof value !== "string") return value;
  const saved = (path) => filled(path.split(".").reduce((at, name) => at[name], names));
  const whole = /^\$\{([^}]+)\}$/.exec(value);
  const text = (each) => (typeof each === "string" ? each : JSON.stringify(each));
  return whole ? saved(whole[1]) : value.replace(/\$\{([^}]+)\}/g, (_, path) => text(saved(path)));
}

function matches(found, expected) {
  if (expected === "$absent") return found === absent;
  if (expected === "$present") return found !== absent;
  if (expected === "$any") return found !== absent && found !== null && found !== "";
  const pattern = typeof expected === "string" && /^\/(.+)\/$/s.exec(expected);
  return pattern ? typeof found === "string" && new RegExp(pattern[1]).test(found) : isDeepStrictEqual(found, expected);
}

function check(found, expected, where) {
  const both = (test) => test(found) && test(expected);
  if (both((each) => Array.isArray(each)) && found.length === expected.length) {
    expected.forEach((each, number) => check(found[number], each, `${where}[${number}]`));
  } else if (both((each) => each && typeof each === "object" && !Array.isArray(each))) {
    const { $only, ...members } = expected;
    if ($only) check(Object.keys(found).sort(), Object.keys(members).sort(), `members of ${where}`);
    for (const [name, each] of Object.entries(members)) {
      check(name in found ? found[name] : absent, each, `${where}.${name}`);
    }
  } else if (!matches(found, expected)) {
    fail(`${where} is ${found === absent ? "absent" : JSON.stringify(found)}, not ${JSON.stringify(expected)}`);
  }
}

function errorObject([status, code, param]) {
  const type = code.startsWith("idempotency_") ? "idempotency_error" : errorTypes[status] ?? "invalid_request_error";
  if (specificationOnly) return status === 404 && code === "resource_missing" ? { code } : { type };
  return { type, code, param, message: "$any" };
}

async function request(step) {
  const [, method, path] = /^(\S+) (.*)$/.exec(filled(step.request));
  const key = filled("key" in step ? step.key : "${key}");
  const headers = { ...(key && { Authorization: `Bearer ${key}` }), ...filled(step.headers ?? {}) };
  if ("body" in step || "content" in step) headers["Content-Type"] ??= "application/json";
  const body = "body" in step ? JSON.stringify(filled(step.body)) : filled(step.content);
  const response = await fetch(url + path, { method, headers, body }).catch(() => null);
  if (!response) return check(null, "status" in step ? step.status : 200, "status");
  const text = await response.text();
  const result = JSON.parse(text);
  const expected = [step.status ?? step.error?.[0] ?? 200].flat();
  if (!expected.includes(response.status)) fail(`status is ${response.status}, not ${expected}: ${text}`);
  if (step.error) check(result.error ?? absent, errorObject(filled(step.error)), "error");
  for (const [name, each] of Object.entries(filled(step.responseHeaders ?? {}))) {
    check(response.headers.get(name) ?? absent, each, name);
  }
  check(result, filled(step.response ?? {}), "response");
  if (result.object === "webhook_endpoint") {
    secrets[result.id] ??= result.secret;
    secrets[result.url] = secrets[result.id];
  }
  if (step.save) names[step.save] = result;
}

function verified({ target, headers, content }) {
  const event = JSON.parse(content);
  const timestamp = headers["x-service-timestamp"];
  const hmac = createHmac("sha256", secrets[target]).update(`${timestamp}.`).update(content);
  check(headers, {
    "x-service-signature": `sha256=${hmac.digest("hex")}`,
    "x-service-event-type": event.type,
    "user-agent": "Service-Webhooks/1.0",
    "content-type": "/^application.json( *;|$)/",
  }, "headers");
  if (Math.abs(timestamp - Date.now() / 1000) > 300) fail(`x-service-timestamp is ${timestamp}`);
  const attempt = Number(headers["x-service-delivery-attempt"]);
  return { ...event, path: target.slice(names.receiver.length), attempt };
}

function advance(by) {
  const seconds = Object.entries(by).reduce((sum, [unit, number]) => sum + units[unit] * number, 0);
  return request({ request: "POST /_mock/clock/advance", body: "to" in by ? by : { seconds } });
}

async function organization(settings) {
  await request({ request: "POST /_mock/organizations", body: settings, key: null, save: "made" });
  Object.assign(names, { organization: names.made.organization, key: names.made.keys[0].value });
}

async function play(step) {
  if (step.organization) {
    await organization(step.organization);
  } else if (step.respond) {
    [statuses, responded, received] = [filled(step.respond), 0, []];
  } else if (step.advance) {
    await advance(filled(step.advance));
  } else if (step.webhooks) {
    await advance({ seconds: 0 });
    const order = ({ occurredAt, path, attempt }) => [occurredAt, path, attempt].join(" ");
    const found = received.splice(0).filter((each) => each.target.startsWith(names.receiver)).map(verified);
    check(found.sort((one, other) => (order(one) < order(other) ? -1 : 1)), filled(step.webhooks), "webhooks");
  } else if (step.together) {
    await Promise.all(Array.from({ length: step.together }, () => request(step)));
  } else {
    for (let times = step.times ?? 1; times > 0; times -= 1) await request(step);
  }
}

async function playAll(steps, rows) {
  for (const [index, step] of steps.entries()) {
    for (const row of typeof step.each === "string" ? rows[step.each] : step.each ?? [{}]) {
      let whole = row && typeof row === "object" ? { ...step, ...row } : step;
      if (specificationOnly && whole.choice) {
        if (!whole.specified) continue;
        const { status, error, response, responseHeaders, webhooks, ...rest } = whole;
        whole = { ...rest, ...whole.specified };
      }
      if (step.each) names[step.as ?? "row"] = row;
      await (whole.steps ? playAll(whole.steps, rows) : play(whole)).catch((error) =>
        fail(`step ${index + 1} ${JSON.stringify(row)}: ${error.message}`),
      );
    }
  }
}

async function playCase({ steps }, rows, number) {
  [received, statuses, responded, secrets] = [[], [204], 0, {}];
  names = { receiver: `http://127.0.0.1:${receiver.address().port}/${number}` };
  await organization({});
  await playAll(steps, rows);
}

await new Promise((resolve) => receiver.listen(0, "127.0.0.1", resolve));
let number = 0;
let failures = 0;
for (const file of named.length ? named : files) {
  const { rows = {}, cases } = JSON.parse(readFileSync(new URL(file, import.meta.url)));
  for (const each of cases) {
    if (specificationOnly && each.choice) continue;
    number += 1;
    const failure = await playCase(each, rows, number).then(() => null, (error) => error);
    failures += failure ? 1 : 0;
    console.log(`${failure ? "FAIL" : "ok  "} ${file}: ${each.name}${failure ? `\n     ${failure.message}` : ""}`);
  }
}
console.log(`${number} cases, ${failures} failed`);
receiver.close();
receiver.closeAllConnections();
process.exitCode = failures ? 1 : 0;
