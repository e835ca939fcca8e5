// The summary of a run: what happened when the clock was advanced.

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
