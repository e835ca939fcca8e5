"""Runs examples against a mock, and shows what the SDK and the mock sent."""

import ast
import asyncio
import contextlib
import io
import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import httpx

from followup._core.time import reproducible_randomness
from followup_mockserver import MockService
from followup_mockserver.control import access_to
from followup_mockserver.world.state.journal import CallDetails, JournalEntry

from .markdown import block, json_text

NOW = "2026-09-28T12:00:00Z"
"""The time of the mock."""

RECEIVER = "https://clinic.example/webhooks"

_REQUEST_HEADERS = ("authorization", "content-type", "idempotency-key", "service-version")
_RESPONSE_HEADERS = ("Request-Id", "Service-Version")


class Examples:
    """A mock whose objects are the same in every run, and the names that the examples have defined.

    Args:
        asynchronous: whether ``client`` is an ``AsyncFollowUp``.
    """

    def __init__(self, *, asynchronous: bool = False) -> None:
        self.service = MockService(seed=1, start_time=NOW)
        self.service.mount(RECEIVER, lambda _: httpx.Response(204))
        client = self.service.async_client() if asynchronous else self.service.client()
        self._names: dict[str, Any] = {"client": client}
        self._runs = 0

    def run(self, code: str, file: str) -> None:
        """Run an example, in which ``client`` is a client of the mock."""
        self._runs += 1
        # A reader's client has the base URL and the key of the environment; this one calls the mock.
        code = re.sub(r"^client = (Async)?FollowUp\(\).*", "", code, flags=re.MULTILINE)
        compiled = compile(code, file, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        with reproducible_randomness(self._runs), contextlib.redirect_stdout(io.StringIO()):
            if awaited := eval(compiled, self._names):  # noqa: S307
                asyncio.run(awaited)
        self.service.advance()

    def last_call(self, operation: str) -> tuple[str, str]:
        """Return the request of the last call of an operation, and its response, as they were on the wire."""
        journal = access_to(self.service).tenant.journal
        entry = next(each for each in journal.newest_first() if each.operation == operation)
        details = journal.details(entry)
        assert details is not None
        return _request(entry, details), _response(entry, details)


def _request(entry: JournalEntry, details: CallDetails) -> str:
    query = f"?{urlencode(details.query)}" if details.query else ""
    lines = [f"{entry.method} {entry.path}{query} HTTP/1.1"]
    shown = {name: details.request_headers[name] for name in _REQUEST_HEADERS if name in details.request_headers}
    lines += [f"{name.title()}: {value}" for name, value in shown.items()]
    return _message(lines, details.request_body or b"")


def _response(entry: JournalEntry, details: CallDetails) -> str:
    status = f"HTTP/1.1 {entry.status} {httpx.codes.get_reason_phrase(entry.status)}"
    return _message([status, *_selected(details.response_headers)], details.response_body)


def _selected(headers: Mapping[str, str]) -> list[str]:
    values = httpx.Headers(headers)
    return ["Content-Type: application/json", *(f"{name}: {values[name]}" for name in _RESPONSE_HEADERS)]


def _message(lines: list[str], body: bytes) -> str:
    return http_message(lines, json.loads(body) if body else None)


def http_message(lines: list[str], body: Any) -> str:
    """Return a request or response as it is on the wire, with its JSON indented.

    Args:
        lines: the first line and the headers.
        body: the decoded JSON; None if there is no body.
    """
    text = "" if body is None else f"\n\n{json_text(body)}"
    return block("http", "\n".join(lines) + text)
