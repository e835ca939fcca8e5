// Forms that call the control API, as their attributes declare:
//
//   data-call="POST /clock/advance"     method and path
//   data-report="The stage is {stage}." the report afterwards; names in braces are fields of the response, and
//                                       {data.length|delivery|deliveries} is a number with its noun; or the name of
//                                       a function in REPORTS
//   data-follow="apt_…"                 id of the object acted on: the report says what followed as well
//   data-confirm="Reset?"               a question that the user must confirm first
//   data-clear                          the form is cleared afterwards
//   data-empty="null"                   empty fields are sent as null instead of being omitted
//   data-kind="number"                  of a field: number, json, or instant, in the time zone of its data-zone
//   name="patient.phone"                of a field: sent as {"patient": {"phone": …}}
//   data-value-of="reason"              of an element: shows the value of this field, as a literal of Python

import { call } from "./mock.js";
import { counted, followedBy, linksOf, summaryOf } from "./run.js";
import { instantOf } from "./times.js";

const LINKS = { run: linksOf };

const REPORTS = {
  run: (response, submitter) => `${submitter.textContent}: ${summaryOf(response)}.`,
  resend: ({ lastError, lastStatusCode }) =>
    lastError ? `Sent again: failed. ${lastError}` : `Sent again: delivered (${lastStatusCode}).`,
};

/** Submits a form to the control API; resolves to the text of the report and its links, or to null if cancelled. */
export async function submit(form, submitter) {
  const [method, path] = form.dataset.call.split(" ");
  const body = bodyOf(form, submitter);
  if (form.dataset.confirm && !(await confirmed(form.dataset.confirm))) return null;
  const response = await call(method, path, method === "DELETE" ? undefined : body);
  if ("clear" in form.dataset) form.reset();
  const text = reportOf(form.dataset.report, response, submitter);
  if (!form.dataset.follow) return { text, links: LINKS[form.dataset.report]?.(response) };
  const followed = await followedBy(form.dataset.follow);
  return { text: `${text}${followed.text}`, links: followed.links };
}

/** Writes the values of fields into the lines of Python of their forms. */
export function showValues(root) {
  for (const place of root.querySelectorAll("[data-value-of]")) {
    place.textContent = literalOf(place.closest("form").elements[place.dataset.valueOf]);
  }
}

function literalOf(field) {
  try {
    return field.value.trim() ? JSON.stringify(valueOf(field)) : "…";
  } catch {
    return "…"; // no valid value yet
  }
}

/** Shows a dialog; resolves to whether the user confirmed it. */
export function confirmedIn(dialog) {
  return new Promise((resolve) => {
    dialog.returnValue = "cancel";
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "confirm"), { once: true });
    dialog.showModal();
  });
}

function confirmed(question) {
  document.getElementById("confirmation-text").textContent = question;
  return confirmedIn(document.getElementById("confirmation"));
}

function reportOf(template, response, submitter) {
  if (Object.hasOwn(REPORTS, template)) return REPORTS[template](response, submitter);
  return template.replace(/\{([\w.]+)(?:\|(\w+)\|(\w+))?\}/g, (_, path, one, many) => {
    const value = path.split(".").reduce((parent, name) => parent?.[name], response);
    return one ? counted(value, [one, many]) : value;
  });
}

function bodyOf(form, submitter) {
  const fields = [...form.elements].filter(
    (field) => field.name && field.getClientRects().length && (field.type !== "submit" || field === submitter),
  );
  const body = {};
  for (const field of fields) {
    if (field.value.trim() !== "") {
      put(body, field.name.split("."), valueOf(field));
    } else if (form.dataset.empty === "null") {
      put(body, field.name.split("."), null);
    }
  }
  return body;
}

function put(object, [name, ...rest], value) {
  if (rest.length) put((object[name] ??= {}), rest, value);
  else object[name] = value;
}

function valueOf(field) {
  switch (field.dataset.kind) {
    case "number":
      return Number(field.value);
    case "instant":
      return timestampOf(field);
    case "json":
      return parsed(field);
    default:
      return field.value;
  }
}

function timestampOf(field) {
  const instant = instantOf(field.value, field.dataset.zone);
  if (Number.isNaN(instant)) throw new Error(`${field.name}: This must be a date and time such as ${field.placeholder}.`);
  return new Date(instant).toISOString();
}

function parsed(field) {
  try {
    return JSON.parse(field.value);
  } catch {
    throw new Error(`${field.name}: This must be JSON.`);
  }
}
