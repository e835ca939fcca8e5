"""Plays the cases of this folder against a mock. README.md describes their format."""

import functools
import hashlib
import hmac
import itertools
import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import httpx
from support.receivers import Inbox

FOLDER = Path(__file__).parent
ERROR_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    409: "idempotency_error",
    429: "rate_limit_error",
    500: "api_error",
}
EXPECTATIONS = {"status", "error", "response", "responseHeaders", "webhooks"}
ABSENT = object()
NUMBERS = itertools.count(1)


class Case(NamedTuple):
    """A case, and the named lists of rows of its file."""

    file: str
    content: Any
    rows: Any

    @property
    def id(self) -> str:
        return f"{self.file}: {self.content['name']}"


def cases(folder: Path = FOLDER, *, specification_only: bool = False) -> list[Case]:
    """Return the cases of all files, or those that decide no open point as a whole."""
    files = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}
    every = [Case(name, case, file.get("rows", {})) for name, file in files.items() for case in file["cases"]]
    return [case for case in every if not (specification_only and "choice" in case.content)]


class Player:
    """Plays one case in an organization of its own.

    Args:
        http: sends requests to a mock.
        inbox: receives the webhooks for ``receiver`` and the paths below it.
        receiver: the URL of the inbox.
        specification_only: demand nothing that the specification leaves open.
    """

    def __init__(self, http: httpx.Client, inbox: Inbox, receiver: str, *, specification_only: bool = False) -> None:
        self.http = http
        self.inbox = inbox
        self.specification_only = specification_only
        self.names: dict[str, Any] = {"receiver": f"{receiver}/{next(NUMBERS)}"}
        self.secrets: dict[str, str] = {}
        self.respond([204])

    def play(self, case: Case) -> None:
        """Raise an AssertionError that names the first step whose expectation is not met."""
        self.organization({})
        self.steps(case.content["steps"], case)
        self.advance({"seconds": 0})  # no webhook of this case reaches the receiver during the next one

    def steps(self, steps: Any, case: Case) -> None:
        for number, step in enumerate(steps, 1):
            rows = step.get("each", [{}])
            for row in case.rows[rows] if isinstance(rows, str) else rows:
                whole = {**step, **row} if isinstance(row, dict) else step
                if self.specification_only and "choice" in whole:
                    if "specified" not in whole:
                        continue
                    whole = {name: whole[name] for name in whole.keys() - EXPECTATIONS} | whole["specified"]
                self.names |= {step.get("as", "row"): row} if "each" in step else {}
                try:
                    self.steps(whole["steps"], case) if "steps" in whole else self.step(whole)
                except AssertionError as error:
                    raise AssertionError(f"step {number} {json.dumps(row)}: {error}") from None

    def organization(self, settings: Any) -> None:
        """Go on in a new organization."""
        self.request({"request": "POST /_mock/organizations", "body": settings, "key": None, "save": "made"})
        made = self.names["made"]
        self.names |= {"organization": made["organization"], "key": made["keys"][0]["value"]}

    def step(self, step: Any) -> None:
        if "organization" in step:
            self.organization(step["organization"])
        elif "respond" in step:
            self.respond(self.filled(step["respond"]))
        elif "advance" in step:
            self.advance(self.filled(step["advance"]))
        elif "webhooks" in step:
            self.advance({"seconds": 0})
            check(self.received(), self.filled(step["webhooks"]), "webhooks")
        elif "together" in step:
            with ThreadPoolExecutor(step["together"]) as pool:
                list(pool.map(lambda _: self.request(step), range(step["together"])))
        else:
            for _ in range(step.get("times", 1)):
                self.request(step)

    def request(self, step: Any) -> None:
        method, path = self.filled(step["request"]).split(" ", 1)
        key = self.filled(step.get("key", "${key}"))
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        body = {"json": self.filled(step["body"])} if "body" in step else {"content": self.filled(step.get("content"))}
        if "content" in step:
            headers["Content-Type"] = "application/json"
        try:
            response = self.http.request(
                method, path, headers=headers | self.filled(step.get("headers", {})), timeout=60, **body
            )
        except httpx.TransportError:
            check(None, step.get("status", 200), "status")
            return
        result = response.json()
        expected = step.get("status", step["error"][0] if "error" in step else 200)
        if response.status_code not in (expected if isinstance(expected, list) else [expected]):
            raise AssertionError(f"status is {response.status_code}, not {expected}: {response.text}")
        if "error" in step:
            check(result.get("error", ABSENT), self.error_object(*self.filled(step["error"])), "error")
        for name, value in self.filled(step.get("responseHeaders", {})).items():
            check(response.headers.get(name, ABSENT), value, name)
        check(result, self.filled(step.get("response", {})), "response")
        if result.get("object") == "webhook_endpoint" and not result.get("deleted"):
            secret = result.get("secret") or self.secrets[result["id"]]
            self.secrets |= {result["id"]: secret, result["url"]: secret}
        if "save" in step:
            self.names[step["save"]] = result

    def error_object(self, status: int, code: str, param: str | None) -> Any:
        kind = ERROR_TYPES.get(status, "invalid_request_error")
        kind = "idempotency_error" if code.startswith("idempotency_") else kind
        if self.specification_only:
            return {"code": code} if (status, code) == (404, "resource_missing") else {"type": kind}
        return {"type": kind, "code": code, "param": param, "message": "$any"}

    def advance(self, by: Any) -> None:
        self.request({"request": "POST /_mock/clock/advance", "body": by if "to" in by else {"seconds": seconds(by)}})

    def respond(self, statuses: list[int]) -> None:
        """Let the receiver respond with these statuses, the last one again and again, and forget what it received."""
        self.inbox.requests.clear()
        self.inbox.status_for = lambda number: statuses[min(number, len(statuses)) - 1]

    def received(self) -> list[Any]:
        """Return the webhooks since the last call, in order of ``occurredAt``, path and attempt."""
        found = []
        requests, self.inbox.requests[:] = [*self.inbox.requests], []
        for each in requests:
            url = str(each.url)
            if url.startswith(self.names["receiver"]):
                event = verified(each, self.secrets[url])
                attempt = int(each.headers["x-service-delivery-attempt"])
                found.append(event | {"path": url.removeprefix(self.names["receiver"]), "attempt": attempt})
        return sorted(found, key=lambda each: (each["occurredAt"], each["path"], each["attempt"]))

    def filled(self, value: Any) -> Any:
        """Return a value with saved values in the place of ``${name}``."""
        if isinstance(value, dict):
            return {self.filled(name): self.filled(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self.filled(each) for each in value]
        if not isinstance(value, str):
            return value
        if whole := re.fullmatch(r"\$\{([^}]+)\}", value):
            return self.saved(whole[1])
        return re.sub(r"\$\{([^}]+)\}", lambda found: text(self.saved(found[1])), value)

    def saved(self, path: str) -> Any:
        def member(at: Any, name: str) -> Any:
            return at[int(name)] if isinstance(at, list) else at[name]

        return self.filled(functools.reduce(member, path.split("."), self.names))


def seconds(by: dict[str, float]) -> float:
    units = {"days": 86_400, "hours": 3_600, "minutes": 60, "seconds": 1}
    return sum(units[unit] * number for unit, number in by.items())


def text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def verified(request: httpx.Request, secret: str) -> Any:
    """Return the body of a webhook whose headers and signature are as section 6.2 says."""
    timestamp = request.headers["x-service-timestamp"]
    signed = hmac.new(secret.encode(), timestamp.encode() + b"." + request.content, hashlib.sha256).hexdigest()
    body = json.loads(request.content)
    assert abs(int(timestamp) - time.time()) < 300
    for name, value in {
        "x-service-signature": f"sha256={signed}",
        "x-service-event-type": body["type"],
        "user-agent": "Service-Webhooks/1.0",
        "content-type": "/^application.json( *;|$)/",
    }.items():
        check(request.headers.get(name), value, name)
    return body


def check(found: Any, expected: Any, where: str) -> None:
    """Assert that a value matches a pattern."""
    if isinstance(expected, dict) and isinstance(found, dict):
        if expected.get("$only"):
            check(sorted(found), sorted({*expected} - {"$only"}), f"members of {where}")
        for name, value in expected.items():
            if name != "$only":
                check(found.get(name, ABSENT), value, f"{where}.{name}")
    elif isinstance(expected, list) and isinstance(found, list) and len(found) == len(expected):
        for number, (one, other) in enumerate(zip(found, expected, strict=True)):
            check(one, other, f"{where}[{number}]")
    elif not matches(found, expected):
        shown = "absent" if found is ABSENT else json.dumps(found)
        raise AssertionError(f"{where} is {shown}, not {json.dumps(expected)}")


def matches(found: Any, expected: Any) -> bool:
    if expected == "$absent":
        return found is ABSENT
    if expected == "$present":
        return found is not ABSENT
    if expected == "$any":
        return found is not ABSENT and found is not None and found != ""
    if isinstance(expected, str) and len(expected) > 1 and expected[0] == expected[-1] == "/":
        return isinstance(found, str) and re.search(expected[1:-1], found) is not None
    return type(found) is type(expected) and bool(found == expected)
