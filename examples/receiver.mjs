// A webhook receiver in JavaScript without dependencies. Run it with
//   FOLLOWUP_WEBHOOK_SECRET=whsec_... PORT=8000 node receiver.mjs
// GET /handled is the probe of "followup-mock check-receiver".
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const { FOLLOWUP_WEBHOOK_SECRET: secret, PORT: port = "8000" } = process.env;
const TOLERANCE = 300; // seconds
const handled = new Map(); // in production, a table of your database

function isGenuine(body, headers) {
  const timestamp = headers["x-service-timestamp"] ?? "";
  if (!/^\d{1,12}$/.test(timestamp)) return false;
  if (Math.abs(Date.now() / 1000 - Number(timestamp)) > TOLERANCE) return false;
  const digest = createHmac("sha256", secret).update(`${timestamp}.`).update(body).digest("hex");
  const expected = Buffer.from(`sha256=${digest}`);
  const received = Buffer.from(headers["x-service-signature"] ?? "");
  return expected.length === received.length && timingSafeEqual(expected, received);
}

function work(event) {
  handled.set(event.id, handled.get(event.id) + 1);
}

async function receive(request, response) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks); // raw: re-serialized JSON does not match the signature
  if (!isGenuine(body, request.headers)) return response.writeHead(401).end();
  const event = JSON.parse(body.toString("utf8"));
  if (!handled.has(event.id)) {
    handled.set(event.id, 0); // before the response, so that a repetition finds it
    setImmediate(work, event);
  }
  response.writeHead(204).end();
}

const server = createServer(async (request, response) => {
  if (request.method === "GET" && request.url === "/handled") {
    return response.end(JSON.stringify({ handled: Object.fromEntries(handled) }));
  }
  if (request.method !== "POST" || request.url !== "/webhooks") {
    return response.writeHead(404).end();
  }
  try {
    await receive(request, response);
  } catch {
    response.writeHead(500).end(); // the service sends it again
  }
});
server.listen(Number(port), "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${server.address().port}`);
});
