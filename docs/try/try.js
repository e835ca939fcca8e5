// The page that runs SDK and mock: an editor, and the dashboard of the mock in a frame.

const WAIT = 20_000; // milliseconds that the dashboard waits for a change
const element = (id) => document.getElementById(id);
const here = (name) => new URL(name, import.meta.url);

const EXAMPLES = {
  book: `appointment = client.appointments.create(
    patient={"phone": "+5491155550000", "full_name": "Ana Pérez"},
    start_at=service.clock.now + timedelta(days=3),
)
appointment`,
  advance: "service.advance(days=2, hours=1)",
  move: `service.reschedule_appointment(appointment.id, start_at=service.clock.now + timedelta(days=5))
service.advance()  # sends the webhook
received[-1]`,
  cancel: `client.appointments.cancel(appointment.id, reason="doctor is ill")
service.advance(days=2)
client.appointments.retrieve(appointment.id).status`,
};

const waiting = new Map();
const watchers = new Set();
let worker;

function call(name, ...values) {
  const id = crypto.randomUUID?.() ?? String(Math.random());
  worker.postMessage({ id, name, values });
  return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
}

function onMessage({ data: { id, value, problem, loaded } }) {
  const progress = element("try-progress");
  if (loaded) progress.value = loaded;
  if (loaded >= progress.max) element("try-status").textContent = "Starting Python …";
  const { resolve, reject } = waiting.get(id) ?? {};
  if (!resolve) return; // it was stopped
  waiting.delete(id);
  if (problem === undefined) resolve(value);
  else reject(new Error(problem));
}

function changed() {
  for (const resolve of watchers) resolve();
  watchers.clear();
}

function change() {
  return new Promise((resolve) => {
    watchers.add(resolve);
    setTimeout(resolve, WAIT);
  });
}

/** Responds to the dashboard. Python cannot wait for a change as a server does, so that is done here. */
async function respond(method, path, body) {
  const since = path.match(/^changes\?since=(\d+)/)?.[1];
  const request = since ? `changes?since=${since}&wait=0` : path;
  let response = await call("respond", method, request, body);
  if (since && String(JSON.parse(response[2]).version) === since) {
    await change();
    response = await call("respond", method, request, body);
  }
  if (method !== "GET") changed();
  return response;
}

window.followup = { respond };

function showRunning(running) {
  for (const button of document.querySelectorAll("#try-run, [data-example]")) button.disabled = running;
  element("try-stop").hidden = !running;
}

/** Runs what is in the editor, and returns whether it succeeded. */
async function run() {
  if (element("try-run").disabled) return false;
  const output = element("try-output");
  let succeeded = false;
  showRunning(true);
  try {
    output.textContent = (await call("run", element("try-code").value)) || "(nothing was printed)";
    delete output.dataset.problem;
    succeeded = true;
  } catch (problem) {
    output.textContent = problem.message;
    output.dataset.problem = "";
  }
  showRunning(false);
  changed();
  return succeeded;
}

/** Ends what runs. Only the end of the worker does that, so everything that Python has in memory is lost. */
function stop() {
  worker.terminate();
  const stopped = new Error("Stopped. Python starts again, with a new mock: what you have booked is lost.");
  for (const { reject } of waiting.values()) reject(stopped);
  waiting.clear();
  load();
}

const tabs = [...document.querySelectorAll("[data-show]")];

async function show(name) {
  select(name);
  const address = `#/${await call("view", name)}`;
  element("try-dashboard").contentWindow.location.hash = address;
}

function select(name) {
  for (const tab of tabs) {
    const selected = tab.dataset.show === name;
    tab.setAttribute("aria-selected", String(selected));
    tab.tabIndex = selected ? 0 : -1;
  }
}

/** Marks a step as done, and the one after it as the next. */
function finish(button) {
  button.dataset.done = "";
  for (const step of document.querySelectorAll("[data-example]")) step.classList.remove("next");
  button.nextElementSibling?.classList.add("next");
}

async function load() {
  const status = element("try-status");
  const progress = element("try-progress");
  element("try-load").disabled = true;
  progress.value = 0;
  progress.hidden = false;
  status.textContent = "Loading Python, the SDK and the mock …";
  const started = new Worker(here("worker.js"), { type: "module" });
  worker = started;
  worker.addEventListener("message", onMessage);
  try {
    await new Promise((resolve, reject) => {
      worker.addEventListener("error", () => reject(new Error("the files of this page are not all there")));
      call("start").then(resolve, reject);
    });
  } catch (problem) {
    if (worker !== started) return; // it was stopped
    progress.hidden = true;
    status.textContent = `It could not be loaded: ${problem.message}`;
    element("try-load").disabled = false;
    return;
  }
  element("try-load").hidden = progress.hidden = true;
  status.textContent = "Python, the SDK and the mock run in this page.";
  element("try-frame").innerHTML = `<iframe id="try-dashboard" title="Dashboard of the mock" src="${here("dashboard/index.html")}"></iframe>`;
  select("overview");
  element("try-room").hidden = false;
  element("try-code").value ||= EXAMPLES.book;
  element("try-code").focus();
}

element("try-load")?.addEventListener("click", load);
element("try-run")?.addEventListener("click", run);
element("try-stop")?.addEventListener("click", stop);
element("try-code")?.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run();
});
for (const button of document.querySelectorAll("[data-example]")) {
  button.addEventListener("click", async () => {
    element("try-code").value = EXAMPLES[button.dataset.example];
    if (await run()) finish(button);
    await show(button.dataset.view);
  });
}
tabs.forEach((tab, position) => {
  tab.addEventListener("click", () => show(tab.dataset.show));
  tab.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const next = step && tabs.at((position + step) % tabs.length);
    next?.focus();
    next?.click();
  });
});
