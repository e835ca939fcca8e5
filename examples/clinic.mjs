// Uses the mock from JavaScript, as a CI job would:
//   followup-mock serve --port 0 --env-file mock.env & followup-mock wait ... ; node --env-file=mock.env clinic.mjs
const { FOLLOWUP_BASE_URL: url, FOLLOWUP_API_KEY: key } = process.env;
const headers = { Authorization: `Bearer ${key}`, "Content-Type": "application/json" };

async function call(method, path, body) {
  const response = await fetch(url + path, { method, headers, body: body && JSON.stringify(body) });
  const result = await response.json();
  if (!response.ok) throw new Error(`${response.status} ${result.error.code} ${result.error.param}`);
  return result;
}

const start = new Date(Date.now() + 3 * 24 * 3600 * 1000).toISOString();
await call("POST", "/v1/appointments", { patient: { phone: "+54 9 11 5555-0000" }, startAt: start });
await call("POST", "/_mock/clock/advance", { to: start });
const { data } = await call("GET", "/_mock/messages");
console.log(data.map((message) => message.kind).join(" "));
