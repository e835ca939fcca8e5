"""Set-ups in which something responds: another program, the service with another opinion, or the healthy service."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from contract.specification import OPERATIONS
from support.doctor import KEY, Doctor
from support.server import Action, ScriptedServer, drip, hang, hang_up, reply
from support.services import ACCOUNT, SCOPES, contract, error, headers, listed, service

from followup._core.operations import declarations_of
from followup.cli.doctor import needs_follow_up, scope_of
from followup.resources import all_groups

AFTER_SERVICE = "clock, key, mode, scopes, lines, version, contract, endpoints"
HTML = {"Content-Type": "text/html; charset=utf-8"}
OTHERS: dict[str, tuple[Action, str]] = {
    "a login page": (reply(200, b"<html>Log in</html>", HTML), "its body is not JSON (19 bytes of text/html;"),
    "a login page elsewhere": (reply(302, b"", {"Location": "https://login.example/?token=hidden"}), "302 Found"),
    "JSON of another service": (reply(200, {"status": "ok"}, headers()), "does not match the specification: id is"),
    "a list": (reply(200, []), "does not match the specification: "),
    "a gateway without the path": (reply(403, {"message": "Missing Authentication Token"}), "403 Forbidden"),
    "a gateway with keys of its own": (reply(401, {"message": "Missing Authentication Token"}), "401 Unauthorized"),
    "a wrong path": (
        error(404, "invalid_request_error", "path_unknown", "There is no such path."),
        "404 invalid_request_error (path_unknown): There is no such path.",
    ),
    "an account of another service": (reply(200, {**ACCOUNT, "livemode": "no"}, headers()), "livemode is not"),
    "a service that is down": (reply(503, b"<html>Service Unavailable</html>", HTML), "503 Service Unavailable"),
    "the rate limit": (
        error(429, "rate_limit_error", "rate_limit", "Too many requests."),
        "429 rate_limit_error (rate_limit): Too many requests. [account.retrieve, request req_1]. Try again later",
    ),
}


class TestResponds:
    @pytest.mark.parametrize(("action", "expected"), OTHERS.values(), ids=OTHERS)
    def test_something_else(self, doctor: Doctor, server: ScriptedServer, action: Action, expected: str) -> None:
        server.script = [service(action)]
        found = doctor(server.url)
        assert found.status == 1
        (problem,) = found.problems
        assert problem.startswith("service responds, but not with an account: ")
        assert expected in problem
        assert ("Try again later" in problem) == (expected[:3] in ("503", "429"))
        assert found.not_checked == [f"{AFTER_SERVICE} (no usable response)."]
        assert "hidden" not in problem

    @pytest.mark.parametrize(
        ("action", "problem"),
        [(hang, "no response in time"), (drip, "no response in time"), (lambda _: hang_up, "no response (")],
    )
    def test_a_server_that_does_not_respond(
        self, doctor: Doctor, server: ScriptedServer, action: Callable[[Any], Action], problem: str
    ) -> None:
        server.script = [action(server.released)]
        found = doctor(server.url, timeout=1)
        assert found.status == 2
        assert f"FAIL connections are accepted, but: account.retrieve: {problem}" in found.of("service")


class TestClock:
    @pytest.mark.parametrize(
        ("offset", "expected"),
        [
            (-290, "OK 290 s ahead of the service"),
            (290, "OK 290 s behind the service"),
            (-310, "FAIL this computer is 310 s ahead of the service; webhooks whose"),
            (
                86_400,
                "FAIL this computer is 86,400 s behind the service; webhooks whose timestamp is more than 300 s off",
            ),
        ],
    )
    def test_section_6_2_the_tolerance_is_five_minutes(
        self, doctor: Doctor, server: ScriptedServer, offset: float, expected: str
    ) -> None:
        server.script = [service(reply(200, ACCOUNT, headers(offset=offset)))]
        found = doctor(server.url)
        number = r"[\d,]+(?= s (ahead|behind))"  # which a slow machine changes
        assert re.sub(number, "N", found.of("clock")).startswith(re.sub(number, "N", expected))
        assert found.status == expected.startswith("FAIL")


def account(**changes: Any) -> Action:
    return reply(200, {**ACCOUNT, **changes}, headers())


def without_time(**more: str) -> Action:
    rest = {name: value for name, value in headers().items() if name != "Date"}
    return reply(200, ACCOUNT, rest | more)


def endpoint(delivered: str | None, error: Any) -> Action:
    return listed({"lastDeliveredAt": delivered, "lastError": error})


FAILED = {"at": "2026-09-28T13:00:00.000Z", "message": "The receiver responded with 500."}
QUOTED = {**FAILED, "message": f"no patient +54 9 11 5555-0000, {KEY}"}
NOT_SERVED = "FAIL not served at /api/v1/openapi.json"
FOUND: list[tuple[Action, str, str, list[str]]] = [
    (service(without_time()), "clock", "OK not compared, because the response has no Date", []),
    (service(without_time(Date="yesterday")), "clock", "OK not compared, because the response has no Date", []),
    (
        service(error(401, "authentication_error", "api_key_revoked", f"No, {KEY} is not a key.")),
        "key",
        (
            "FAIL the service rejects the key: 401 authentication_error (api_key_revoked): No, … is not a key. "
            "[account.retrieve, request req_1]. It may be incomplete, revoked, expired, or of another environment than "
            "FOLLOWUP_BASE_URL: check FOLLOWUP_API_KEY."
        ),
        ["mode, scopes, lines, version, contract, endpoints (the key shows no account)."],
    ),
    (service(account(livemode=True)), "mode", "OK production (livemode true): the service writes to real patients", []),
    (service(account(name=f"Clínica {KEY}")), "key", "OK 'sistema' of Clínica … (org_1)", []),
    (
        service(account(serviceLines=["network"])),
        "lines",
        "WARN the organization lacks follow_up (patients.create,",
        [],
    ),
    (
        service(error(400, "invalid_request_error", "version_unknown", "There are 2027-01-01.")),
        "version",
        (
            "FAIL the service rejects 2026-09-28: 400 invalid_request_error (version_unknown): There are …. "
            "[account.retrieve, request req_1]. Upgrade followup."
        ),
        ["key, mode, scopes, lines, contract, endpoints (the version is rejected)."],
    ),
    *(
        (
            service(reply(200, ACCOUNT, headers(version=version))),
            "version",
            f"FAIL requested 2026-09-28, but the service confirms {version or 'none'}. Upgrade followup",
            [],
        )
        for version in ("2027-01-01", None)
    ),
    *(
        (service(None, action), "contract", f"{NOT_SERVED} ({reason}). Check the path", [])
        for action, reason in (
            (reply(404, {}), "Client error '404 X'"),
            (reply(200, b"<html></html>", HTML), "JSONDecodeError"),
            (reply(200, {"paths": []}), "AttributeError"),
            (reply(200, []), "TypeError"),
            (reply(200, {}), "KeyError"),
            (hang_up, "Server disconnected without sending a response."),
        )
    ),
    (
        service(None, reply(200, contract("visits.create", "doctors.list"))),
        "contract",
        "FAIL lacks doctors.list, visits.create. Do not use",
        [],
    ),
    *(
        (service(None, None, endpoint(delivered, error)), "endpoints", expected, [])
        for delivered, error, expected in (
            (None, None, "OK we_1 (clinic.example): never delivered"),
            ("2026-09-28T14:00:00.000Z", FAILED, "OK we_1 (clinic.example): last delivered 2026-09-2"),
            ("2026-09-28T12:00:00.000Z", FAILED, "FAIL we_1 (clinic.example) fails: The receiver responded with 500."),
            (None, FAILED, "FAIL we_1 (clinic.example) fails: The receiver responded with 500."),
            (None, QUOTED, "FAIL we_1 (clinic.example) fails: no patient …, fu_test_… ("),
        )
    ),
]


@pytest.mark.parametrize(("action", "check", "expected", "not_checked"), FOUND)
def test_what_a_check_finds(
    doctor: Doctor, server: ScriptedServer, action: Action, check: str, expected: str, not_checked: list[str]
) -> None:
    server.script = [action]
    found = doctor(server.url)
    assert found.of(check).startswith(expected)
    assert len(found.problems) == (not expected.startswith("OK"))
    assert (found.status, found.not_checked) == (expected.startswith("FAIL"), not_checked)


def test_a_contract_that_drips_has_a_time_limit(doctor: Doctor, server: ScriptedServer) -> None:
    server.script = [service(None, drip(server.released))]
    assert doctor(server.url, timeout=1).of("contract").startswith(f"{NOT_SERVED} (TimeoutError). Check the path")


class TestPermissions:
    @pytest.mark.parametrize("scope", SCOPES)
    def test_section_5_a_missing_scope_is_a_warning_that_names_its_operations(
        self, doctor: Doctor, server: ScriptedServer, scope: str
    ) -> None:
        scopes = [each for each in SCOPES if each != scope]
        account = {**ACCOUNT, "apiKey": {**ACCOUNT["apiKey"], "scopes": scopes}}
        server.script = [service(reply(200, account, headers()))]
        found = doctor(server.url)
        assert found.status == 0
        names = ", ".join(each.name for each in OPERATIONS if each.scope == scope)
        assert found.of("scopes").startswith(f"WARN the key lacks {scope} (")
        assert sorted(found.of("scopes").partition("(")[2].partition(")")[0].split(", ")) == sorted(names.split(", "))
        assert found.of("endpoints").startswith("WARN not checked, ") == (scope == "webhooks:read")

    def test_the_permissions_are_those_of_the_specification(self) -> None:
        declared = [each for group in all_groups() for each in declarations_of(group).values()]
        found = {each.name: (scope_of(each), needs_follow_up(each)) for each in declared}
        assert found == {each.name: (each.scope, each.line) for each in OPERATIONS}


class TestContract:
    def test_only_three_things_are_requested(self, doctor: Doctor, server: ScriptedServer) -> None:
        server.script = [service()]
        doctor(server.url)
        assert [f"{each.method} {each.target}" for each in server.received] == [
            "GET /v1/account",
            "GET /api/v1/openapi.json",
            "GET /v1/webhook_endpoints?limit=100",
        ]
        assert {each.headers["authorization"] for each in server.received} == {f"Bearer {KEY}"}


class TestEndpoints:
    @pytest.mark.parametrize(
        ("url", "host"),
        [
            ("https://clinic.example/T0A1B2/s3cret?key=abc", "clinic.example"),
            *((each, "a URL without a readable host") for each in ("https://[bad/s3cret", "https:///s3cret", "")),
        ],
    )
    def test_the_path_of_a_receiver_is_not_shown(
        self, doctor: Doctor, server: ScriptedServer, url: str, host: str
    ) -> None:
        server.script = [service(None, None, listed({"url": url, "lastDeliveredAt": None, "lastError": FAILED}))]
        found = doctor(server.url).of("endpoints")
        assert found.startswith(f"FAIL we_1 ({host}) fails: ")
        assert re.search(r"\(2026-09-28 \d\d:\d\d [A-Z]+[^ ;]*; never delivered\)", found), found

    def test_each_endpoint_has_its_line(self, doctor: Doctor, server: ScriptedServer) -> None:
        server.script = [service(None, None, listed({}, {"id": "we_2", "status": "disabled"}, more=True))]
        found = doctor(server.url)
        assert [outcome for outcome, check, _ in found.lines if check == "endpoints"] == ["FAIL", "OK", "OK"]
        assert found.lines[-1][2] == "only the newest 100 endpoints were checked"
        assert server.received[-1].target == "/v1/webhook_endpoints?limit=100"
