"""The life of a call as a table, [outcomes] -> [steps]: no sockets, no sleeping, and a fake clock and jitter."""

import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import formatdate
from typing import Any
from unittest import mock

import attrs
import pytest
from support.responses import error, patient
from support.systems import needs_time_zones
from support.times import ManualTime

from followup import (
    APIConnectionError,
    APIStatusError,
    APITimeoutError,
    AuthenticationError,
    ConflictError,
    EventBatchError,
    FollowUpError,
    IdempotencyError,
    InternalServerError,
    InvalidRequestError,
    NotFoundError,
    PermissionDeniedError,
    RateLimitError,
    ResponseDecodeError,
)
from followup._core.call.options import Options
from followup._core.call.retries import backoff, run_call
from followup._core.call.steps import Broken, Call, Lost, NotSendable, NotSent, Outcome, Response, Send, TimedOut, Wait
from followup._core.errors import parse_retry_after
from followup._core.telemetry import CallObserver
from followup.resources.events import Events
from followup.resources.patients import Patients
from followup.resources.webhook_endpoints import WebhookEndpoints

TODAY = 1_000_000_000.0
"""Seconds since the epoch: what the wall clock shows throughout."""


@attrs.frozen
class Took:
    """An outcome that took its time."""

    seconds: float
    outcome: Outcome


def r(status: int, body: Any = None, **headers: str) -> Response:
    """A response; ``retry_after`` stands for the header Retry-After."""
    content = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(status_code=status, headers=named, content=content)


def date(seconds_from_now: float) -> str:
    return formatdate(TODAY + seconds_from_now, usegmt=True)


OK = r(200, patient())
GONE = r(404, error(code="resource_missing"))
REFUSED = NotSent("ConnectError", detail="refused")
NO_CONNECTION_IN_TIME = NotSent("ConnectTimeout", timed_out=True)
BROKEN = Broken("ReadError")
TIMED_OUT = TimedOut("ReadTimeout")
LOST = Lost("DecodingError")
IMPOSSIBLE = NotSendable("InvalidURL")

CREATE = Patients.create.call((), {"phone": "+54 9 11 5555-0000", "idempotency_key": "key-1"})
RETRIEVE = Patients.retrieve.call(("pat_1",), {})
UPDATE = Patients.update.call(("pat_1",), {"full_name": "Ana"})
DELETE = WebhookEndpoints.delete.call(("we_1",), {})
SEND_EVENTS = Events.create.call(
    ([{"id": "1", "type": "patient.upserted", "occurred_at": "2026-09-28T12:00:00Z", "data": {}}],),
    {"idempotency_key": "key-1"},
)


@attrs.frozen
class Done:
    """The call returns its result."""

    id: str = "pat_1"


@attrs.frozen
class Failed:
    """The call raises exactly this error."""

    kind: type[FollowUpError]
    attempts: int = 1
    was_sent: str = "yes"
    text: str = ""


@attrs.frozen
class Row:
    """What a call does, and how it ends.

    Attributes:
        steps: ``"send"`` for a ``Send`` that may take 30 s, ``"send 5"`` for one that may take 5 s, numbers for waits.
    """

    name: str
    outcomes: Sequence[Outcome | Took]
    steps: Sequence[str | float]
    end: Done | Failed
    call: Call[Any] = CREATE
    max_retries: int = 2
    deadline: float | None = None
    attempt_seconds: float | None = 30.0
    jitter: float = 0.0


ONCE: list[str | float] = ["send"]
TWICE: list[str | float] = ["send", 0.5, "send"]
THRICE: list[str | float] = ["send", 0.5, "send", 1.0, "send"]
AT_ONCE: list[str | float] = ["send", "send"]
NOT_DELETED = Failed(NotFoundError, 2)
TOO_LARGE = Response(status_code=200, headers={}, content=b"", problem="is larger than 64 MiB")
KINDS = {
    300: APIStatusError, 304: APIStatusError, 400: InvalidRequestError, 401: AuthenticationError, 402: APIStatusError,
    403: PermissionDeniedError, 404: NotFoundError, 405: APIStatusError, 410: APIStatusError, 413: APIStatusError,
    422: APIStatusError,
}  # fmt: skip

ONE_ATTEMPT = [
    Row("success", [OK], ONCE, Done()),
    Row("another 2xx is a success", [r(201, patient())], ONCE, Done(), call=RETRIEVE),
    *(Row(f"{status} is raised at once", [r(status, error())], ONCE, Failed(kind)) for status, kind in KINDS.items()),
    Row("400 about its key", [r(400, error("idempotency_error"))], ONCE, Failed(IdempotencyError)),
    Row("a batch", [r(400, {**error(), "results": []})], ONCE, Failed(EventBatchError), call=SEND_EVENTS),
    Row("a batch without results", [r(400, error())], ONCE, Failed(InvalidRequestError), call=SEND_EVENTS),
    Row(
        "results in a refused key",
        [r(401, {**error(), "results": []})],
        ONCE,
        Failed(AuthenticationError),
        call=SEND_EVENTS,
    ),
    Row("too large", [TOO_LARGE], ONCE, Failed(ResponseDecodeError, text="the body is larger than 64 MiB")),
    Row("another", [r(200, patient("pat_2"))], ONCE, Failed(ResponseDecodeError, text="another object"), call=RETRIEVE),
    Row("not sendable", [IMPOSSIBLE], ONCE, Failed(APIConnectionError, 1, "no", "cannot be sent (InvalidURL)")),
]

RETRIED = [
    *(Row(f"{n} is retried", [r(n), OK], TWICE, Done()) for n in (408, 409, 429, 500, 501, 502, 503, 504, 529, 599)),
    Row("a GET is retried", [r(500), OK], TWICE, Done(), call=RETRIEVE),
    Row("a PATCH is retried, without a key", [r(500), OK], TWICE, Done(), call=UPDATE),
    Row("refused is retried", [REFUSED, OK], TWICE, Done()),
    Row("no connection in time is retried", [NO_CONNECTION_IN_TIME, OK], TWICE, Done()),
    Row("a timeout is retried", [TIMED_OUT, OK], TWICE, Done()),
    Row("a lost response is retried", [LOST, OK], TWICE, Done()),
    Row("broken on the first attempt is retried at once", [BROKEN, OK], AT_ONCE, Done()),
    Row("broken on the second waits", [BROKEN, BROKEN, OK], ["send", "send", 1.0, "send"], Done()),
    Row("broken after a status waits", [r(500), BROKEN, OK], THRICE, Done()),
    Row("a lasting failure after a retry", [r(500), r(401)], TWICE, Failed(AuthenticationError, 2)),
    Row("not sendable later", [r(500), IMPOSSIBLE], TWICE, Failed(APIConnectionError, 2, "yes", "after 2 attempts")),
    Row("a wrong body is not retried", [r(500), r(200)], TWICE, Failed(ResponseDecodeError, 2)),
]

SIX_WAITS = ["send", 0.5, "send", 1.0, "send", 2.0, "send", 4.0, "send", 8.0, "send", 8.0, "send"]
EXHAUSTED = [
    Row("no retries, a status", [r(500)], ONCE, Failed(InternalServerError), max_retries=0),
    Row("no retries, broken", [BROKEN], ONCE, Failed(APIConnectionError, 1, "maybe", "ReadError"), max_retries=0),
    Row("no retries, refused", [REFUSED], ONCE, Failed(APIConnectionError, 1, "no", "refused"), max_retries=0),
    Row("no retries, a timeout", [TIMED_OUT], ONCE, Failed(APITimeoutError, 1, "maybe", "in time"), max_retries=0),
    Row("one retry", [r(500)] * 2, TWICE, Failed(InternalServerError, 2), max_retries=1),
    Row("two retries", [r(502)] * 3, THRICE, Failed(InternalServerError, 3)),
    Row("up to 8 seconds", [r(500)] * 7, SIX_WAITS, Failed(InternalServerError, 7), max_retries=6),
    Row("jitter", [r(500)] * 3, ["send", 0.375, "send", 0.75, "send"], Failed(InternalServerError, 3), jitter=1.0),
    Row("a conflict that lasts", [r(409)] * 3, THRICE, Failed(ConflictError, 3)),
    Row("a rate limit that lasts", [r(429)] * 3, THRICE, Failed(RateLimitError, 3)),
]

WAS_SENT = [
    Row("never", [REFUSED] * 3, THRICE, Failed(APIConnectionError, 3, "no")),
    Row("out of time", [NO_CONNECTION_IN_TIME] * 3, THRICE, Failed(APITimeoutError, 3, "no", "ConnectTimeout")),
    Row("maybe, then refused", [BROKEN, REFUSED], AT_ONCE, Failed(APIConnectionError, 2, "maybe"), max_retries=1),
    Row("refused, then maybe", [REFUSED, TIMED_OUT], TWICE, Failed(APITimeoutError, 2, "maybe"), max_retries=1),
    Row("lost", [LOST], ONCE, Failed(APIConnectionError, 1, "maybe", "DecodingError"), max_retries=0),
    Row("yes, then refused", [r(500), REFUSED], TWICE, Failed(APIConnectionError, 2, "yes"), max_retries=1),
    Row("yes, then broken", [r(500), BROKEN], TWICE, Failed(APIConnectionError, 2, "yes"), max_retries=1),
    Row("maybe, then yes", [BROKEN, r(401)], AT_ONCE, Failed(AuthenticationError, 2, "yes")),
]

RETRY_AFTER = [
    *(
        Row(
            f"{value!r}", [r(503, retry_after=value), OK], ["send", wait, "send"] if wait else AT_ONCE, Done(), jitter=1
        )
        for value, wait in (
            ("7", 7.0),
            ("0.25", 0.25),
            ("0", 0),
            ("-5", 0),
            ("60", 60.0),
            (date(30), 30.0),
            (date(-30), 0),
        )
    ),
    Row("more than a minute", [r(429, retry_after="61")], ONCE, Failed(RateLimitError)),
    Row("a date too far away", [r(503, retry_after=date(3600))], ONCE, Failed(InternalServerError)),
    *(
        Row(f"nonsense: {value!r}", [r(503, retry_after=value), OK], TWICE, Done())
        for value in ("soon", "", "nan", "inf", "1e999", "Wed, 99 Oct 2015 07:28:00 GMT")
    ),
    Row("with a 404 it changes nothing", [r(404, retry_after="3")], ONCE, Failed(NotFoundError)),
    Row("on the last attempt", [r(429, retry_after="3")], ONCE, Failed(RateLimitError), max_retries=0),
    Row("then backoff", [r(409, retry_after="3"), r(500), OK], ["send", 3.0, "send", 1.0, "send"], Done()),
]

LATE = "not completed within the deadline of 5 s"
DEADLINE = [
    attrs.evolve(row, deadline=row.deadline or 5.0)
    for row in (
        Row("within it", [OK], ["send 5"], Done()),
        Row("it bounds an attempt without a bound", [OK], ["send 5"], Done(), attempt_seconds=None),
        Row("a longer one leaves the attempt its bound", [OK], ONCE, Done(), deadline=300.0),
        Row(
            "attempts and waits use it up", [Took(1.0, r(500)), Took(2.0, r(500)), OK],
            ["send 10", 0.5, "send 8.5", 1.0, "send 5.5"], Done(), deadline=10.0,
        ),
        Row(
            "a wait that would exceed it", [Took(1.0, r(500)), Took(2.0, r(500))], ["send 4", 0.5, "send 2.5"],
            Failed(InternalServerError, 2), deadline=4.0,
        ),
        Row("a wait that would end with it", [r(500)], ["send 0.5"], Failed(InternalServerError), deadline=0.5),
        Row("a wait that ends before", [r(500), OK], ["send 0.75", 0.5, "send 0.25"], Done(), deadline=0.75),
        Row("Retry-After beyond it", [r(503, retry_after="30")], ["send 5"], Failed(InternalServerError)),
        Row("in an attempt", [Took(5, TIMED_OUT)], ["send 5"], Failed(APITimeoutError, 1, "maybe", LATE)),
        Row("a little early", [Took(4.9995, TIMED_OUT)], ["send 5"], Failed(APITimeoutError, 1, "maybe", LATE)),
        Row(
            "a timeout before it", [Took(1.0, TIMED_OUT)], ["send 5"],
            Failed(APITimeoutError, 1, "maybe", "no response in time (ReadTimeout)"), max_retries=0,
        ),
        Row("connecting", [Took(5, NO_CONNECTION_IN_TIME)], ["send 5"], Failed(APITimeoutError, 1, "no", "deadline")),
        Row("broken", [Took(5, BROKEN)], ["send 5"], Failed(APIConnectionError, 1, "maybe", "response (ReadError)")),
        Row("passed by an attempt", [Took(9, r(500))], ["send 5"], Failed(InternalServerError)),
        Row("a success that came too late is a success", [Took(9, OK)], ["send 5"], Done()),
        Row(
            "reached in the second attempt", [Took(1.0, r(500)), Took(3.5, TIMED_OUT)], ["send 5", 0.5, "send 3.5"],
            Failed(APITimeoutError, 2, "yes", f"{LATE} after 2 attempts"),
        ),
    )
]  # fmt: skip

MAYBE_GONE = {"408": r(408), "500": r(500), "503": r(503), "timeout": TIMED_OUT, "lost response": LOST}
NOT_GONE = {"409": r(409), "429": r(429), "refusal": REFUSED, "lack of a connection": NO_CONNECTION_IN_TIME}
DELETION = [
    Row("done", [r(200, {"id": "we_1", "object": "webhook_endpoint", "deleted": True})], ONCE, Done("we_1")),
    Row("not found", [GONE], ONCE, Failed(NotFoundError)),
    *(Row(f"gone after a {name}", [outcome, GONE], TWICE, Done("we_1")) for name, outcome in MAYBE_GONE.items()),
    Row("gone after a break", [BROKEN, GONE], AT_ONCE, Done("we_1")),
    *(Row(f"not found after a {name}", [outcome, GONE], TWICE, NOT_DELETED) for name, outcome in NOT_GONE.items()),
    Row("gone, two attempts ago", [BROKEN, r(429), GONE], ["send", "send", 1.0, "send"], Done("we_1")),
]

TABLES = {
    "one attempt": ONE_ATTEMPT, "retried": RETRIED, "exhausted": EXHAUSTED, "was sent": WAS_SENT,
    "Retry-After": RETRY_AFTER, "deadline": DEADLINE,
    "deletion": [attrs.evolve(row, call=DELETE) for row in DELETION],
    "update": [Row("a 404 after a lost response", [BROKEN, GONE], AT_ONCE, NOT_DELETED, call=UPDATE)],
}  # fmt: skip
ROWS = [pytest.param(row, id=f"{table}: {row.name}") for table, rows in TABLES.items() for row in rows]


class Run:
    """A call taken to its end by a driver that reads the outcomes off a row.

    Args:
        observe: records the call, as with OpenTelemetry.

    Attributes:
        steps: what the call did, as a row says it.
        sends: every ``Send``.
        result, error: how it ended.
    """

    def __init__(self, row: Row, observe: CallObserver | None = None) -> None:
        self.steps: list[str | float] = []
        self.sends: list[Send] = []
        self.result: Any = None
        self.error: FollowUpError | None = None
        time = ManualTime(TODAY)
        try:
            with mock.patch("followup._core.call.retries.random_fraction", return_value=row.jitter):
                self._drive(row, run_call(row.call, attrs.evolve(options(row), observe=observe, time=time)), time)
        except FollowUpError as error:
            self.error = error

    def _drive(self, row: Row, steps: Any, time: ManualTime) -> None:
        left = list(row.outcomes)
        step = next(steps)
        while True:
            outcome: Outcome | None = None
            if isinstance(step, Wait):
                self.steps.append(step.seconds)
                time.advance(step.seconds)
            else:
                self.sends.append(step)
                self.steps.append("send" if step.limit() == 30 else f"send {step.limit():g}")
                taken = left.pop(0)
                outcome = taken.outcome if isinstance(taken, Took) else taken
                time.advance(taken.seconds if isinstance(taken, Took) else 0)
            try:
                step = steps.send(outcome)
            except StopIteration as done:
                self.result = done.value
                return


def options(row: Row) -> Options:
    return Options(
        api_key="fu_secret_key", base_url="https://api.example", service_version="2026-07-15", timeouts=None,
        attempt_seconds=row.attempt_seconds, max_retries=row.max_retries, deadline=row.deadline,
    )  # fmt: skip


@pytest.mark.parametrize("row", ROWS)
def test_a_call_takes_these_steps_and_ends_so(row: Row) -> None:
    assert_that_it_ends_so(Run(row), row)
    assert_that_it_ends_so(Run(row, CallObserver("https://api.example")), row)


def assert_that_it_ends_so(run: Run, row: Row) -> None:
    assert run.steps == list(row.steps)
    first, *others = run.sends
    assert first.content == row.call.content
    assert first.headers.get("Idempotency-Key") == row.call.idempotency_key
    assert [attrs.evolve(send, within=first.within) for send in others] == [first] * len(others)
    assert len(run.sends) == len(row.outcomes), "an outcome of the row was not asked for"
    if isinstance(row.end, Done):
        last = row.outcomes[-1]
        assert run.error is None
        assert run.result.id == row.end.id
        assert run.result.last_response.status_code == getattr(last, "outcome", last).status_code
        return
    assert type(run.error) is row.end.kind
    assert (run.error.attempts, run.error.was_sent) == (row.end.attempts, row.end.was_sent)
    assert run.error.idempotency_key == row.call.idempotency_key
    assert run.error.operation == row.call.operation
    assert row.end.text in str(run.error)


@needs_time_zones
@pytest.mark.parametrize("zone", ["UTC", "America/Argentina/Buenos_Aires", "Asia/Tokyo"])
@pytest.mark.parametrize(
    "text", ["Mon, 28 Sep 2026 12:00:19 GMT", "Mon Sep 28 12:00:19 2026", "Mon, 28 Sep 2026 12:00:19 -0000"]
)
def test_a_date_without_a_zone_is_in_utc(text: str, zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        assert parse_retry_after(text, datetime(2026, 9, 28, 12, tzinfo=UTC)) == 19
    finally:
        monkeypatch.undo()
        time.tzset()


def test_the_request_is_complete() -> None:
    (send,) = Run(Row("", [OK], [], Done())).sends
    assert (send.method, send.url) == ("POST", "https://api.example/v1/patients")
    assert json.loads(send.content or b"") == {"phone": "+54 9 11 5555-0000"}
    assert send.headers["Authorization"] == "Bearer fu_secret_key"
    assert send.headers["Service-Version"] == "2026-07-15"
    assert send.headers["Content-Type"] == "application/json"
    assert send.headers["Idempotency-Key"] == "key-1"


def test_a_query_follows_the_path_and_no_error_shows_it() -> None:
    call = Patients.list.call((), {"limit": 5, "phone": "+54 9 11 5555-0000"})
    run = Run(Row("", [r(400, error(message="no +54 9 11 5555-0000 for fu_secret_key"))], [], Done(), call=call))
    (send,) = run.sends
    assert send.url == "https://api.example/v1/patients?limit=5&phone=%2B54+9+11+5555-0000"
    assert send.content is None
    assert send.headers.keys().isdisjoint({"Content-Type", "Idempotency-Key"})
    assert "5555" not in str(run.error)
    assert "fu_secret_key" not in str(run.error)


def test_backoff_is_exponential_and_bounded_and_never_more_than_a_quarter_less() -> None:
    for attempt, longest in [(1, 0.5), (2, 1), (3, 2), (4, 4), (5, 8), (6, 8), (50, 8), (5000, 8)]:
        assert [backoff(attempt, jitter) for jitter in (0.0, 0.5, 1.0)] == [longest, longest * 0.875, longest * 0.75]
