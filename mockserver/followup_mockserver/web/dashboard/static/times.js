// The selected time zone: the texts of all <time> elements, also relative to the clock of the mock, and the fields for times.
//
//   <time datetime="…">                       30 Sep 14:30
//   <time datetime="…" data-seconds>          30 Sep 14:30:05
//   <time datetime="…" data-relative>         30 Sep 14:30, in 3 h
//   <time datetime="…" data-relative="only">  in 3 h
//   <time datetime="…" data-real>             07:09:42, in real time, in the time zone of the browser
//   <time datetime="…" data-happened="…">     30 Sep 14:30, with the real time in the title
//   <span data-zone-short>                    GMT-3
//
// The clock at the top names the zone, and the year if it is not that of real time. Other times do only where they differ
// from the clock, as in summer.

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const formats = new Map();

export const zone = {
  get: () => (sessionStorage.getItem("zone") === "utc" ? "utc" : "organization"),
  set: (value) => sessionStorage.setItem("zone", value),
};

/** The clock of the mock, from the attributes of the page that it sent last. */
export class MockClock {
  constructor({ now, clock }) {
    this.isRunning = clock === "running";
    this.base = Date.parse(now);
    this.read = Date.now();
  }

  now() {
    return this.isRunning ? this.base + Date.now() - this.read : this.base;
  }
}

/** Sets the texts of the times in an element. */
export function showTimes(root, clock, timeZone) {
  const now = clock.now();
  const current = partsOf(now, timeZone);
  for (const name of root.querySelectorAll("[data-zone-short]")) name.textContent = current.timeZoneName;
  for (const element of root.querySelectorAll("time")) {
    const text = textOf(element, now, current, timeZone);
    if (element.textContent !== text) element.textContent = text;
    if (element.dataset.happened) element.title = `${element.dateTime}, in real time ${realText(element.dataset.happened, timeZone)}`;
  }
}

/** Sets the time zone of the fields for times. A time that the user has entered stays the same instant. */
export function showZoneOfFields(root, timeZone) {
  for (const name of root.querySelectorAll("[data-zone-name]")) name.textContent = timeZone;
  for (const field of root.querySelectorAll("input[data-kind=instant]")) {
    const instant = field.value ? instantOf(field.value, field.dataset.zone) : NaN;
    if (!Number.isNaN(instant)) field.value = localText(instant, timeZone);
    field.dataset.zone = timeZone;
    field.placeholder = localText(Math.ceil(Date.parse(field.dataset.now) / SECOND) * SECOND, timeZone);
  }
}

/** Returns the instant of a local time such as "2026-09-28 12:00", NaN if it is none; one that the zone skips counts as an hour later. */
export function instantOf(text, timeZone) {
  const local = Date.parse(`${text.trim().replace(" ", "T")}Z`);
  if (Number.isNaN(local)) return local;
  const guess = local - offsetAt(local, timeZone);
  return local - offsetAt(guess, timeZone);
}

/** Returns the text of an instant, with seconds on demand. */
export function timeText(instant, clock, timeZone, hasSeconds) {
  return absoluteText(instant, partsOf(clock.now(), timeZone), timeZone, hasSeconds);
}

function localText(instant, timeZone) {
  return new Date(instant + offsetAt(instant, timeZone)).toISOString().slice(0, "2026-09-28T12:00:00".length).replace("T", " ");
}

/** Returns how many milliseconds the clocks of the zone are ahead of UTC. */
function offsetAt(instant, timeZone) {
  const { year, month, day, hour, minute, second } = partsOf(instant, timeZone);
  const local = Date.parse(`${month} ${day}, ${year} ${hour}:${minute}:${second} UTC`);
  return local - Math.floor(instant / SECOND) * SECOND;
}

function textOf(element, now, current, timeZone) {
  const instant = Date.parse(element.dateTime);
  const relative = element.dataset.relative;
  if ("real" in element.dataset) return realText(element.dateTime, timeZone);
  if (relative === "only") return relativeText(instant, now);
  const isClock = element.parentElement?.id === "now";
  const reference = isClock ? partsOf(Date.now(), timeZone) : current;
  const text = absoluteText(instant, reference, timeZone, "seconds" in element.dataset, isClock);
  return relative === undefined ? text : `${text}, ${relativeText(instant, now)}`;
}

/** Returns a real time as the clock of this machine shows it, with the day unless that is today. */
function realText(timestamp, timeZone) {
  const local = timeZone === "UTC" ? timeZone : Intl.DateTimeFormat().resolvedOptions().timeZone;
  const [parts, today] = [Date.parse(timestamp), Date.now()].map((instant) => partsOf(instant, local));
  const time = `${parts.hour}:${parts.minute}:${parts.second}${local === "UTC" ? "Z" : ""}`;
  const isToday = ["day", "month", "year"].every((name) => parts[name] === today[name]);
  return isToday ? time : `${parts.day} ${parts.month} ${time}`;
}

function absoluteText(instant, current, timeZone, hasSeconds, hasZone = false) {
  const parts = partsOf(instant, timeZone);
  const year = parts.year === current.year ? "" : ` ${parts.year}`;
  const seconds = hasSeconds ? `:${parts.second}` : "";
  const isUsual = parts.timeZoneName === current.timeZoneName;
  const zoneName = isUsual && !hasZone ? "" : parts.timeZoneName === "UTC" ? "Z" : ` ${parts.timeZoneName}`;
  return `${parts.day} ${parts.month}${year} ${parts.hour}:${parts.minute}${seconds}${zoneName}`;
}

/** Returns "now", "in 3 h" or "2 d ago", in the largest unit, with the next smaller one below 10. */
function relativeText(instant, now) {
  const distance = Math.abs(instant - now);
  if (distance < 1000) return "now";
  const text = durationText(distance);
  return instant > now ? `in ${text}` : `${text} ago`;
}

function durationText(milliseconds) {
  if (milliseconds < MINUTE) return `${Math.floor(milliseconds / 1000)} s`;
  if (milliseconds < HOUR) return `${Math.floor(milliseconds / MINUTE)} min`;
  if (milliseconds < DAY) return inTwoUnits(milliseconds, HOUR, "h", MINUTE, "min");
  return inTwoUnits(milliseconds, DAY, "d", HOUR, "h");
}

function inTwoUnits(milliseconds, unit, name, smaller, smallerName) {
  const count = Math.floor(milliseconds / unit);
  const rest = Math.floor((milliseconds % unit) / smaller);
  return count < 10 && rest ? `${count} ${name} ${rest} ${smallerName}` : `${count} ${name}`;
}

function partsOf(instant, timeZone) {
  const parts = formatOf(timeZone).formatToParts(instant);
  return Object.fromEntries(parts.map(({ type, value }) => [type, value]));
}

function formatOf(timeZone) {
  if (!formats.has(timeZone)) formats.set(timeZone, newFormat(timeZone));
  return formats.get(timeZone);
}

function newFormat(timeZone) {
  const fields = {
    day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit",
    hourCycle: "h23", timeZoneName: "short",
  };
  try {
    return new Intl.DateTimeFormat("en-US", { ...fields, timeZone });
  } catch {
    return new Intl.DateTimeFormat("en-US", { ...fields, timeZone: "UTC" }); // the browser does not know the zone
  }
}
