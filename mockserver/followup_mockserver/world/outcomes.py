"""What became of jobs, attempts, inbound events and calls: outcomes are data, and their sentences are made here.

Rules, senders and the engine store an ``Outcome``. Its kind decides how it is worded, and in which tone it is shown; no
other code reads an outcome from its sentence.
"""

import functools
from collections.abc import Iterator, Sequence
from datetime import datetime
from enum import Enum
from string import Formatter
from typing import Literal

import attrs

from followup._for_mockserver import format_timestamp

Tone = Literal["succeeded", "failed", "pending", "muted", ""]

Part = str | datetime
"""A part of a sentence; a page shows a time in the selected time zone."""


class Kind(Enum):
    """The kind of an outcome: its tone, what became of the subject, and why. Snapshots contain its name.

    The words in braces are fields of the ``Outcome``.
    """

    OTHER = "", "{reason}"
    """A name, such as that of a control call, the state of an object, or an unknown text of an older snapshot."""

    CHANGED = "", "changed", "{names}"
    INCOMPLETE = "", "{reason}, missing {names}"
    RESCHEDULED = "", "start {at} instead of {before}"

    # messages to patients, and other jobs
    SENT = "succeeded", "sent"
    ENDED = "", "ended"
    ALREADY_PAST = "muted", "not scheduled", "{hours:g} h before the start was already past"
    CLOSED = "muted", "not sent", "the appointment or intake request is closed"
    OPTED_OUT = "muted", "not sent", "the patient has opted out"
    NO_PHONE = "muted", "not sent", "no phone number is known"
    APPOINTMENT_CANCELLED = "muted", "cancelled", "the appointment was cancelled"
    VISITED = "muted", "cancelled", "the visit has taken place"
    COMPLETED = "muted", "cancelled", "nothing is missing any more"
    DISCARDED = "muted", "cancelled", "the intake request was discarded"
    APPOINTMENT_MOVED = "muted", "moved", "the appointment now starts at {at}"
    FAILED_INSIDE = "failed", "failed inside the mock", "{reason}"

    # jobs that have not run; never stored
    DUE = "pending", "due {at}"
    WILL_NOT_BE_SENT = "muted", "due {at}; will not be sent", "{reason}"
    IN_PROGRESS = "", "in progress"

    # webhooks
    MADE_FOR_TRIGGER = "muted", "not sent", "made for a triggered event"
    NOT_YET_SENT = "muted", "not sent", "the service does not send {reason} yet"
    NO_ENDPOINT = "muted", "not sent", "there is no webhook endpoint"
    ENDPOINT_DISABLED = "muted", "not sent", "the endpoint was disabled"
    NOT_SUBSCRIBED = "muted", "not sent", "not subscribed to {reason}"
    DISABLED_MEANWHILE = "muted", "cancelled", "the endpoint was disabled"
    ENDPOINT_DELETED = "muted", "cancelled", "the endpoint was deleted"
    RETRY_SUCCEEDED = "muted", "cancelled", "a manual retry succeeded"
    RETRY_FAILED = "muted", "moved", "a manual retry failed"
    OVERTAKEN = "muted", "moved", "the delivery that overtakes it was attempted"
    NOTHING_TO_SEND = "muted", "nothing to send"
    DELETED_MEANWHILE = "", "deleted meanwhile"

    # responses, and attempts without one
    RESPONDED = "", "{status}"
    TIMED_OUT = "failed", "no response within {seconds:g} s"
    UNREACHABLE = "failed", "no response ({reason})"
    NOTHING_MOUNTED = (
        "failed",
        "nothing is mounted for {reason}; mounted: {names}. Use service.mount(), or MockService(allow_network=True)",
    )
    INTERRUPTED = "failed", "the attempt was interrupted ({reason})"
    RAISED = "failed", "the receiver raised {reason}"
    STARTUP_RAISED = "failed", "the startup of the receiver raised {reason}"

    # calls and inbound events
    PROCESSED = "succeeded", "processed"
    CHANGED_DUPLICATE = (
        "pending",
        "duplicate with other data",
        "the change was not taken over; the id of an event must contain what changes",
    )
    FAILED = "failed", "failed", "{reason}"
    INVALID = "failed", "invalid", "{reason}"
    PARTLY_REFUSED = "pending", "{status}, {reason} events refused"
    DROPPED = "failed", "no response"
    NOT_IN_JOURNAL = "", "no longer in the journal"

    def __init__(self, tone: Tone, what: str, why: str = "") -> None:
        self.tone: Tone = tone
        self.what = what
        self.why = why

    @property
    def is_withdrawn(self) -> bool:
        """Whether a job was cancelled or moved before it was due."""
        return self.what in ("cancelled", "moved")


@attrs.frozen(cache_hash=True, repr=False)
class Outcome:
    """What became of something. It has no personal data.

    Attributes:
        kind: the kind.
        reason: a word that belongs to it: the class of an exception, the code of an error, an event type, a URL.
        status: the HTTP status of a response.
        names: fields that changed or are missing; the URLs at which something is mounted.
        hours: of a reminder, the hours before the start of the appointment.
        seconds: the time limit that was exceeded.
        at: when a job is due, or an appointment starts now.
        before: when the appointment started before.
        next_at: when the next attempt of a delivery is due; None if there is none.
        replay_of: id of the request whose response was replayed; empty if none was.
    """

    kind: Kind
    reason: str = ""
    status: int | None = None
    names: tuple[str, ...] = ()
    hours: float | None = None
    seconds: float | None = None
    at: datetime | None = None
    before: datetime | None = None
    next_at: datetime | None = None
    replay_of: str = ""

    @functools.cached_property
    def tone(self) -> Tone:
        """The tone in which it is shown."""
        if self.kind is Kind.RESPONDED:
            return "succeeded" if self.status is not None and 200 <= self.status < 300 else "failed"
        return self.kind.tone

    @functools.cached_property
    def error(self) -> str | None:
        """The error of a failed attempt, as the API and the log have it; None for anything else."""
        if self.kind is Kind.RESPONDED:
            return f"HTTP status {self.status}." if self.tone == "failed" else None
        if self.kind.tone != "failed" or self.kind.why:
            return None
        return f"{self.what[0].upper()}{self.what[1:]}."

    @property
    def what(self) -> str:
        """The sentence without the reason, such as ``not sent``."""
        return joined(filled(self.kind.what, self))

    @property
    def why(self) -> str:
        """The reason alone, such as ``the patient has opted out``; empty if there is none."""
        return joined(filled(self.kind.why, self))

    @property
    def brief(self) -> list[Part]:
        """The sentence of an attempt or a call, such as ``500``."""
        kind = self.kind
        if self.status is not None and self.error is not None:
            parts: list[Part] = [str(self.status)]
        else:
            parts = filled(f"{kind.what}: {kind.why}" if kind.why else kind.what, self)
        return [*parts, f", replayed the response of {self.replay_of}"] if self.replay_of else parts

    @property
    def parts(self) -> list[Part]:
        """The sentence, such as ``HTTP status 500. Next attempt at 2026-10-01T12:00:00.000Z.``."""
        parts: list[Part] = self.brief if self.error is None else [self.error]
        return parts if self.next_at is None else [*parts, " Next attempt at ", self.next_at, "."]

    @property
    def text(self) -> str:
        """The sentence as text."""
        return joined(self.parts)


@functools.lru_cache(maxsize=1_024)
def other(words: str) -> Outcome:
    """Return an outcome that is a name or a state."""
    return Outcome(Kind.OTHER, words)


def joined(parts: Sequence[Part]) -> str:
    """Return a sentence as text."""
    return "".join(part if isinstance(part, str) else format_timestamp(part) for part in parts)


def before_start(hours: float) -> str:
    """Return when a reminder is due, such as ``24 h before the start``."""
    return f"{hours:g} h before the start"


def filled(template: str, outcome: Outcome) -> list[Part]:
    """Return a template whose fields, such as ``{status}``, are those of an outcome."""
    return [*_parts(template, outcome)] if "{" in template else [template]


def _parts(template: str, outcome: Outcome) -> Iterator[Part]:
    # Not ``str.format``: a time stays a time, which a page shows in the zone that its reader has selected.
    for literal, name, spec, _ in Formatter().parse(template):
        if literal:
            yield literal
        if name:
            value = getattr(outcome, name)
            if isinstance(value, datetime):
                yield value
            elif value is not None:  # as in a snapshot that somebody has changed
                yield ", ".join(value) if isinstance(value, tuple) else format(value, spec or "")
