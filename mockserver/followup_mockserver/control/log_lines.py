"""The lines of a log: what ended in a mock, in columns. They have no personal data."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import attrs

from followup._for_mockserver import redacted
from followup_mockserver.control.occurrences import ATTEMPT_JOBS, JOB_TITLES, MESSAGE_JOBS, counted
from followup_mockserver.world.outcomes import Kind, Outcome
from followup_mockserver.world.schema.formats import without_query
from followup_mockserver.world.state.journal import ControlCall, Ended, EndedAttempt, EndedCall, EndedRun

_LONGEST_PARAM = 60
"""Characters of a parameter that are shown; a client can send any name."""
_LONGEST_PATH = 200
_MOST_SHOWN = 5
"""Ignored keys, and ids of events, that are shown; the journal has all."""

Columns = tuple[str, str, str, Sequence[str]]
"""The status, what ended, the id of the object that it is about or the time that it took, and remarks."""


def columns_of(event: Ended) -> Columns:
    """Return the columns of what has ended; without a title if it is not worth a line."""
    if isinstance(event, EndedCall):
        entry = event.entry
        path = redacted(entry.path, max_length=_LONGEST_PATH)  # of a client that takes a phone for an id
        remarks = [*remarks_on(attrs.asdict(entry, recurse=False)), f"{entry.method} {path}"]
        took = f"{event.seconds * 1000:5.0f} ms" if event.seconds else ""
        return str(event.status or "---"), entry.operation or "no operation", took, remarks
    if isinstance(event, EndedAttempt):
        return str(event.attempt.status_code or "---"), f"> {event.attempt.event_type}", event.about, _remarks(event)
    if isinstance(event, ControlCall):
        return "", event.name, event.about or "", [event.arguments]
    if event.since is None:
        job, outcome = event.jobs[0]
        # Attempts have lines of their own, and the other jobs change nothing that a reader of a log waits for.
        return "", JOB_TITLES[job.kind] if job.kind in MESSAGE_JOBS else "", job.about, [outcome.text]
    if not event.jobs and event.now == event.since:
        return "", "", "", ()
    # Not in the machine's time zone, for which Windows has no hours beyond the year 3000.
    time = f"{event.now:%d %b %Y %H:%M} UTC"
    return "", f"clock +{_duration(event.now - event.since)} -> {time}  {_summary_of(event)}", "", ()


def remarks_on(call: Mapping[str, Any]) -> list[str]:
    """Return what is special about a call, such as ``3 of 4 refused``; nothing for a plain success.

    Args:
        call: the fields of a ``JournalEntry``.
    """
    param = redacted(call.get("param") or "", max_length=_LONGEST_PARAM)
    remarks = [
        f"fault: {call['fault']}" if call.get("fault") else f"{call.get('error_code') or ''} {param}".strip(),
        f"{call['refused']} of {call['events']} refused" if call.get("refused") else "",
        f"attempt {call['attempt']}" if call.get("attempt", 1) > 1 else "",
        "replayed" if call.get("replayed") else "",
        f"duplicate of {call['possible_duplicate_of']}?" if call.get("possible_duplicate_of") else "",
        f"ignored: {_first(call['ignored_keys'])}" if call.get("ignored_keys") else "",
    ]
    if call.get("changed_duplicates"):
        outcome = Outcome(Kind.CHANGED_DUPLICATE)
        remarks.append(f"{outcome.what} ({_first(call['changed_duplicates'])}): {outcome.why}")
    return [each for each in remarks if each]


def _first(texts: Sequence[str]) -> str:
    shown = ", ".join(redacted(each, max_length=_LONGEST_PARAM) for each in texts[:_MOST_SHOWN])
    more = len(texts) - _MOST_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def _remarks(ended: EndedAttempt) -> list[str]:
    attempt, next_at = ended.attempt, ended.next_attempt_at
    host, _, path = without_query(ended.url).partition("://")[2].partition("/")  # the path distinguishes receivers
    again = "the last one" if ended.exhausted else ""
    return [
        "" if attempt.trigger == "schedule" else attempt.trigger,
        f"attempt {attempt.number}" if attempt.number > 1 else "",
        again if next_at is None else f"again in {_duration(next_at - attempt.at)}",
        f"/{path} at {host}",
        "" if attempt.status_code else attempt.error or "",
    ]


def _summary_of(run: EndedRun) -> str:
    """Return how many messages and webhooks a run sent; what it did not send comes first."""
    counts = Counter(
        (outcome.tone == "succeeded", "webhook", "delivered" if outcome.tone == "succeeded" else "failed")
        if job.kind in ATTEMPT_JOBS
        else (outcome.tone == "succeeded", JOB_TITLES[job.kind], outcome.what)
        for job, outcome in run.jobs
        if job.kind in (*ATTEMPT_JOBS, *MESSAGE_JOBS)
    )
    return ", ".join(f"{counted(count, noun)} {word}" for (_, noun, word), count in sorted(counts.items()))


def _duration(time: timedelta) -> str:
    """Return a duration in its two largest units, such as ``1 d 2 h``."""
    rest, parts = round(time.total_seconds()), []
    for unit, seconds in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        number, rest = divmod(rest, seconds)
        parts += [f"{number} {unit}"] if number else []
    return " ".join(parts[:2]) or "0 s"
