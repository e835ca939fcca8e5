// Forms that act: what a form says becomes a call of the control API.
//
//   data-call="POST /clock/advance"   method and path
//   data-done="It is {status}."       what is reported afterwards, filled from the response;
//                                     {data.length|delivery|deliveries} counts; "ran": what a move of the clock did
//   data-confirm="Reset?"             asked first
//   data-clear                        emptied afterwards
//   data-empty="null"                 empty fields are sent as null, and not omitted
//   data-kind="number"                of a field: number, json, or instant (UTC)
//   name="patient.phone"              of a field: becomes {"patient": {"phone": …}}

import { call } from "./mock.js";
import { counted, moved } from "./moves.js";

/** Does what the form says; resolves to what there is to report, or to nothing if the person thought better of it. */
export async function act(form, submitter) {
  const [method, path] = form.dataset.call.split(" ");
  const body = bodyOf(form, submitter);
  if (form.dataset.confirm && !(await confirmed(form.dataset.confirm))) return "";
  const response = await call(method, path, method === "DELETE" ? undefined : body);
  if ("clear" in form.dataset) form.reset();
  if (form.dataset.done === "ran") return `${submitter.textContent}: ${moved(response)}.`;
  return form.dataset.done.replace(/\{([\w.]+)(?:\|(\w+)\|(\w+))?\}/g, (_, path, one, many) => {
    const value = path.split(".").reduce((at, name) => at?.[name], response);
    return one ? counted(value, [one, many]) : value;
  });
}

/** Shows a dialog; resolves to whether it was answered with yes. */
export function answered(dialog) {
  return new Promise((resolve) => {
    dialog.returnValue = "no";
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
    dialog.showModal();
  });
}

function confirmed(text) {
  const dialog = document.getElementById("question");
  document.getElementById("question-text").textContent = text;
  return answered(dialog);
}

function bodyOf(form, submitter) {
  const fields = [...form.elements].filter((field) => field.name && (field.type !== "submit" || field === submitter));
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

function put(into, [name, ...deeper], value) {
  if (deeper.length) put((into[name] ??= {}), deeper, value);
  else into[name] = value;
}

function valueOf(field) {
  switch (field.dataset.kind) {
    case "number":
      return Number(field.value);
    case "instant":
      return new Date(`${field.value}Z`).toISOString(); // browsers omit seconds that are 0
    case "json":
      return parsed(field);
    default:
      return field.value;
  }
}

function parsed(field) {
  try {
    return JSON.parse(field.value);
  } catch {
    throw new Error(`${field.name}: This must be JSON.`);
  }
}
