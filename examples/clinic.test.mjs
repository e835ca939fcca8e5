// The tests of an integration in JavaScript: node --test
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import { newOrganization, startMock } from "./mock.mjs";

let mock;
before(async () => {
  mock = await startMock("--rate-limit", "0");
});
after(() => mock.stop());

const ANA = { phone: "+54 9 11 5555-0000", fullName: "Ana Pérez" };
const START = "2040-01-10T14:30:00.000Z";

/** The code under test: books an appointment, and repeats the request once, under the same key. */
async function book(call, booking) {
  const key = { "Idempotency-Key": randomUUID() };
  const attempt = () => call("POST", "/v1/appointments", booking, key);
  return attempt().catch((error) => (error.status >= 500 ? attempt() : Promise.reject(error)));
}

test("a patient gets two reminders", async () => {
  const call = await newOrganization(mock);
  const { patient } = await book(call, { patient: ANA, startAt: START });
  await call("POST", "/_mock/clock/advance", { to: START });
  const { data } = await call("GET", `/_mock/messages?patient=${patient}`);
  const times = data.map((message) => message.sentAt);
  assert.deepEqual(times, ["2040-01-09T14:30:00.000Z", "2040-01-10T11:30:00.000Z"]);
});

test("a booking whose response is lost is made once", async () => {
  const call = await newOrganization(mock);
  const fault = { operation: "appointments.create", kind: "status", status: 503, when: "after" };
  await call("POST", "/_mock/faults", { ...fault, times: 1 });
  const booked = await book(call, { patient: ANA, startAt: START });
  const { data } = await call("GET", "/v1/appointments");
  assert.deepEqual(data.map((appointment) => appointment.id), [booked.id]);
});

test("an invalid phone is an error that names the field", async () => {
  const call = await newOrganization(mock);
  const booking = book(call, { patient: { phone: "none" }, startAt: START });
  await assert.rejects(booking, { status: 400, code: "parameter_invalid", param: "patient.phone" });
});

test("organizations do not see each other", async () => {
  const [one, other] = [await newOrganization(mock), await newOrganization(mock)];
  await book(one, { patient: ANA, startAt: START });
  assert.equal((await other("GET", "/v1/appointments")).data.length, 0);
});
