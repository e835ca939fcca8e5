// The summaries of test controls: what happened when the clock was advanced, or when the patient or the staff acted.

import { call } from "./mock.js";

const MESSAGES = {
  reminder: ["reminder", "reminders"],
  post_visit: ["post-visit message", "post-visit messages"],
  intake: ["intake message", "intake messages"],
};
const DELIVERIES = ["delivery", "repeated_delivery"];
const isDelivered = ({ outcome }) => /^2\d\d$/.test(outcome);

export const counted = (count, [one, many]) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;

/** Returns the links to what a run did, as pairs of text and address. */
export function linksOf({ ran, jobs }) {
  if (!ran) return [];
  const failed = jobs.some((job) => DELIVERIES.includes(job.kind) && !isDelivered(job));
  return [["Show what ran", "#/history/last_run"], ...(failed ? [["Show deliveries", "#/webhook_deliveries"]] : [])];
}

/** Returns `{ran, jobs}` as text, such as "9 reminders sent, 4 webhooks delivered, 1 failed". */
export function summaryOf({ ran, jobs }) {
  if (!ran) return "nothing was due";
  const parts = [];
  const count = (matches) => jobs.filter(matches).length;
  for (const [kind, nouns] of Object.entries(MESSAGES)) {
    const sent = count((job) => job.kind === kind && job.outcome === "sent");
    if (sent) parts.push(`${counted(sent, nouns)} sent`);
  }
  const unsent = count((job) => job.kind in MESSAGES && job.outcome !== "sent");
  if (unsent) parts.push(`${counted(unsent, ["message", "messages"])} not sent`);

  const delivered = count((job) => DELIVERIES.includes(job.kind) && isDelivered(job));
  const failed = count((job) => DELIVERIES.includes(job.kind)) - delivered;
  if (delivered) parts.push(`${counted(delivered, ["webhook", "webhooks"])} delivered`);
  if (failed) parts.push(delivered ? `${failed.toLocaleString("en")} failed` : `${counted(failed, ["webhook", "webhooks"])} failed`);

  const others = count((job) => !(job.kind in MESSAGES) && !DELIVERIES.includes(job.kind));
  if (others) parts.push(`${counted(others, ["other job", "other jobs"])} run`);
  // After a long run, the response lists only the most recent jobs.
  if (ran > jobs.length) parts.push(`and ${counted(ran - jobs.length, ["earlier job", "earlier jobs"])}`);
  return parts.join(", ");
}

/** Resolves to what followed from the last test control of an object, as sentences to append, and the links to it. */
export async function followedBy(id) {
  const { data: chain } = await call("GET", `/explain/${id}`);
  const control = chain.findLast(({ kind }) => kind === "control");
  if (!control) return { text: "", links: [] }; // the history has dropped it
  const { data } = await call("GET", `/explain/${control.id}`);
  const counts = new Map();
  const reasons = [];
  for (const { kind, cause, outcome } of data) {
    const nouns = kind === "webhook_delivery" ? ["webhook", "webhooks"] : MESSAGES[kind];
    if (nouns && (cause === control.id || kind in MESSAGES)) {
      const key = JSON.stringify([nouns, stateOf(outcome)]);
      counts.set(key, (counts.get(key) ?? 0) + 1);
    } else if (cause === control.id) {
      reasons.push(...outcome.split("; ").filter((part) => part.startsWith("not sent: ")).map((part) => `webhook ${part}`));
    }
  }
  const parts = [...counts].map(([key, count]) => `${counted(count, JSON.parse(key)[0])} ${JSON.parse(key)[1]}`);
  const text = [...parts, ...reasons].join(", ") || "nothing else followed";
  return { text: ` ${text[0].toUpperCase()}${text.slice(1)}.`, links: [["Show what followed", `#/history/${control.id}`]] };
}

/** Returns the state of a job or a delivery without its time and reason: "due", "moved", "not sent". */
function stateOf(outcome) {
  const due = /^due \S+?(?:; (.*))?$/.exec(outcome);
  return (due ? (due[1] ?? "due") : outcome).split(":")[0].replace("succeeded", "delivered");
}
