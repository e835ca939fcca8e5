"""Set-ups in which something responds: another program, the service with another opinion, or the healthy service."""

import pytest
from contract.specification import OPERATIONS
from support.doctor import KEY, Doctor
from support.server import Action, ScriptedServer, drip, hang, hang_up, reply
from support.services import ACCOUNT, SCOPES, contract, error, headers, listed, service

from followup._declarations.operations import declarations_of
from followup.cli.doctor.service import needs_follow_up, scope_of
from followup.resources import all_groups
from followup_mockserver import MockServer

AFTER_SERVICE = "clock, key, mode, scopes, lines, version, contract, endpoints"
HTML = {"Content-Type": "text/html; charset=utf-8"}
LOGIN = "A login page of the network, a proxy or another web server responds instead of the service."

OTHERS: dict[str, tuple[Action, str]] = {
    "a login page": (
        reply(200, b"<html>Log in</html>", HTML),
        f"FAIL the response (200, text/html; charset=utf-8) is not that of the service. {LOGIN}",
    ),
    "a login page elsewhere": (
        reply(302, b"", {"Location": "https://login.example/?token=hidden"}),
        f"FAIL redirects to login.example (302). {LOGIN} If it is the service, set FOLLOWUP_BASE_URL to the URL that",
    ),
    "a redirect to nowhere": (reply(307, b""), "FAIL redirects to nowhere (307)"),
    "JSON of another service": (
        reply(200, {"status": "ok"}, headers()),
        "FAIL the response (200, application/json) is not that of the service",
    ),
    "a list": (reply(200, []), "FAIL the response (200, application/json) is not that of the service"),
    "a gateway without the path": (
        reply(403, {"message": "Missing Authentication Token"}),
        "FAIL the response (403, application/json) is not that of the service",
    ),
    "a wrong path": (
        error(404, "invalid_request_error", "path_unknown", "There is no such path."),
        "FAIL responds, but not with an account: 404 invalid_request_error (path_unknown): There is no such path.",
    ),
    "a service that is down": (
        reply(503, b"<html>Service Unavailable</html>", HTML),
        "FAIL the response (503, text/html; charset=utf-8) is not that of the service",
    ),
    "a service that fails": (
        error(500, "api_error", "internal", "Something failed."),
        "FAIL responds, but not with an account: 500 api_error (internal): Something failed. [request req_1]. Try",
    ),
    "the rate limit": (
        error(429, "rate_limit_error", "rate_limit", "Too many requests."),
        "FAIL responds, but not with an account: 429 rate_limit_error (rate_limit): Too many requests. [request",
    ),
}


class TestResponds:
    @pytest.mark.parametrize(("action", "expected"), OTHERS.values(), ids=OTHERS)
    def test_something_else(self, doctor: Doctor, server: ScriptedServer, action: Action, expected: str) -> None:
        server.script = [service(action)]
        found = doctor(server.url)
        assert found.status == 1
        assert found.of("service").startswith(expected)
        assert "hidden" not in str(found.lines)

    def test_the_remaining_checks_are_named_once(self, doctor: Doctor, server: ScriptedServer) -> None:
        server.script = [service(reply(200, b"<html>Log in</html>", HTML))]
        found = doctor(server.url)
        assert len(found.problems) == 1
        assert found.not_checked == [f"{AFTER_SERVICE} (no usable response)."]

    def test_a_server_that_never_responds(self, doctor: Doctor, server: ScriptedServer) -> None:
        server.script = [hang(server.released)]
        found = doctor(server.url, timeout=1)
        assert found.status == 2
        where = server.url.removeprefix("http://")
        assert found.of("service").startswith(f"FAIL {where} accepts connections, but did not respond within 1 s.")

    def test_a_server_that_never_finishes(self, doctor: Doctor, server: ScriptedServer) -> None:
        server.script = [drip(server.released)]
        found = doctor(server.url, timeout=1)
        assert found.status == 2
        assert "did not respond within 1 s" in found.of("service")

    def test_a_server_that_hangs_up(self, doctor: Doctor, server: ScriptedServer) -> None:
        server.script = [hang_up]
        found = doctor(server.url)
        assert found.status == 2
        assert "accepts connections, but sent no HTTP response (RemoteProtocolError)" in found.of("service")
        assert "If the port expects TLS, use https." in found.of("service")


class TestClock:
    @pytest.mark.parametrize(("offset", "shown"), [(-600, "600 s ahead of"), (86_400, "86,400 s behind")])
    def test_a_clock_that_is_off(self, doctor: Doctor, server: ScriptedServer, offset: float, shown: str) -> None:
        server.script = [service(reply(200, ACCOUNT, headers(offset=offset)))]
        found = doctor(server.url)
        assert found.status == 1
        (problem,) = found.problems
        assert problem == (
            f"clock this computer is {shown} the service; webhooks whose timestamp is more than 300 s off are "
            "rejected. Synchronize its clock (NTP)."
        )

    @pytest.mark.parametrize(("offset", "outcome"), [(-290, "OK"), (290, "OK"), (-310, "FAIL"), (310, "FAIL")])
    def test_section_6_2_the_tolerance_is_five_minutes(
        self, doctor: Doctor, server: ScriptedServer, offset: float, outcome: str
    ) -> None:
        server.script = [service(reply(200, ACCOUNT, headers(offset=offset)))]
        assert doctor(server.url).of("clock").startswith(outcome)

    @pytest.mark.parametrize("date", [None, "yesterday"])
    def test_a_response_without_a_time(self, doctor: Doctor, server: ScriptedServer, date: str | None) -> None:
        rest = {name: value for name, value in headers().items() if name != "Date"}
        server.script = [service(reply(200, ACCOUNT, rest | ({"Date": date} if date else {})))]
        found = doctor(server.url)
        assert found.status == 0
        assert found.not_checked == ["clock (the response has no Date)."]


class TestKey:
    @pytest.mark.parametrize("code", ["api_key_invalid", "api_key_revoked", "api_key_expired"])
    def test_a_key_that_is_rejected(self, doctor: Doctor, server: ScriptedServer, code: str) -> None:
        server.script = [service(error(401, "authentication_error", code, f"No, {KEY} is not a key."))]
        found = doctor(server.url)
        assert found.status == 1
        (problem,) = found.problems
        assert problem == (
            f"key the service rejects the key: 401 authentication_error ({code}): No, … is not a key. [request req_1]. "
            "It may be incomplete, revoked, expired, or of another environment than FOLLOWUP_BASE_URL: check "
            "FOLLOWUP_API_KEY."
        )
        assert found.not_checked == ["mode, scopes, lines, version, endpoints (the key shows no account)."]

    def test_an_account_of_another_service(self, doctor: Doctor, server: ScriptedServer) -> None:
        server.script = [service(reply(200, {**ACCOUNT, "livemode": "no"}, headers()))]
        found = doctor(server.url)
        assert found.status == 1
        (problem,) = found.problems
        assert problem.startswith("key accepted, but the account does not match the specification: livemode is not")

    def test_the_mode_is_said_plainly(self, doctor: Doctor, server: ScriptedServer) -> None:
        server.script = [service(reply(200, {**ACCOUNT, "livemode": True}, headers()))]
        found = doctor(server.url)
        assert found.of("mode") == "OK production (livemode true): the service writes to real patients"

    def test_a_name_that_contains_the_key(self, doctor: Doctor, server: ScriptedServer) -> None:
        server.script = [service(reply(200, {**ACCOUNT, "name": f"Clínica {KEY}"}, headers()))]
        assert doctor(server.url).of("key") == "OK 'sistema' of Clínica … (org_1)"


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
        assert found.not_checked == (["endpoints (the key lacks webhooks:read)."] if scope == "webhooks:read" else [])

    def test_section_5_a_missing_line_is_a_warning(self, doctor: Doctor, server: ScriptedServer) -> None:
        server.script = [service(reply(200, {**ACCOUNT, "serviceLines": ["network"]}, headers()))]
        found = doctor(server.url)
        assert found.status == 0
        assert found.of("lines").startswith("WARN the organization lacks the service line follow_up (patients.create,")

    def test_the_permissions_are_those_of_the_specification(self) -> None:
        declared = [each for group in all_groups() for each in declarations_of(group).values()]
        found = {each.name: (scope_of(each), needs_follow_up(each)) for each in declared}
        assert found == {each.name: (each.scope, each.line) for each in OPERATIONS}


class TestVersion:
    def test_a_version_that_the_service_does_not_know(self, doctor: Doctor, server: ScriptedServer) -> None:
        unknown = error(400, "invalid_request_error", "version_unknown", "There are 2027-01-01.")

        def account(connection: object, received: object) -> bool:
            known = "service-version" not in received.headers  # type: ignore[attr-defined]
            return (reply(200, ACCOUNT, headers(version="2027-01-01")) if known else unknown)(connection, received)  # type: ignore[arg-type]

        server.script = [service(account)]
        found = doctor(server.url)
        assert found.status == 1
        (problem,) = found.problems
        assert problem == (
            "version the service rejects 2026-09-28: 400 invalid_request_error (version_unknown): There are …. "
            "[request req_1]. Upgrade followup: python -m pip install --upgrade followup"
        )

    def test_a_request_that_is_rejected_for_another_reason(self, doctor: Doctor, server: ScriptedServer) -> None:
        server.script = [service(error(400, "invalid_request_error", "no", "No."))]
        found = doctor(server.url)
        assert found.status == 1
        assert found.of("service").startswith("FAIL responds, but not with an account: 400 invalid_request_error (no)")

    @pytest.mark.parametrize(
        ("version", "expected"),
        [("2027-01-01", "the service responds with 2027-01-01"), (None, "the service does not confirm it")],
    )
    def test_a_service_that_responds_with_another_version(
        self, doctor: Doctor, server: ScriptedServer, version: str | None, expected: str
    ) -> None:
        server.script = [service(reply(200, ACCOUNT, headers(version=version)))]
        found = doctor(server.url)
        assert found.status == 1
        (problem,) = found.problems
        assert problem.startswith(f"version requested 2026-09-28, but {expected}. Upgrade followup")


class TestContract:
    def test_the_key_is_not_sent_for_a_public_contract(self, doctor: Doctor, server: ScriptedServer) -> None:
        server.script = [service()]
        doctor(server.url)
        assert [(each.target, "authorization" in each.headers) for each in server.received] == [
            ("/v1/account", True),
            ("/api/v1/openapi.json", False),
            ("/v1/webhook_endpoints?limit=100", True),
        ]

    @pytest.mark.parametrize(
        ("action", "reason"),
        [
            (reply(404, {}), "status 404"),
            (reply(200, b"<html></html>", HTML), "the response is not an OpenAPI document"),
            (reply(200, {"paths": []}), "the response is not an OpenAPI document"),
            (hang_up, "no response (RemoteProtocolError)"),
        ],
    )
    def test_a_contract_that_is_not_served(
        self, doctor: Doctor, server: ScriptedServer, action: Action, reason: str
    ) -> None:
        server.script = [service(None, action)]
        found = doctor(server.url)
        assert found.status == 1
        (problem,) = found.problems
        assert problem == (
            f"contract not served at /api/v1/openapi.json: {reason}. Check the path in FOLLOWUP_BASE_URL."
        )

    def test_a_contract_without_an_operation(self, doctor: Doctor, server: ScriptedServer) -> None:
        server.script = [service(None, reply(200, contract("visits.create", "doctors.list")))]
        found = doctor(server.url)
        assert found.status == 1
        (problem,) = found.problems
        assert problem.startswith("contract version 2026-09-28 lacks doctors.list, visits.create. Do not use")

    def test_a_contract_whose_paths_continue_those_of_its_servers(self, doctor: Doctor, server: ScriptedServer) -> None:
        paths = {path.removeprefix("/v1"): item for path, item in contract()["paths"].items()}
        document = {**contract(), "paths": paths, "servers": [{"url": "https://api.example.com/api/v1/"}]}
        server.script = [service(None, reply(200, document))]
        assert doctor(server.url).status == 0

    def test_a_contract_that_needs_the_key(self, doctor: Doctor, server: ScriptedServer) -> None:
        def act(connection: object, received: object) -> bool:
            allowed = "authorization" in received.headers  # type: ignore[attr-defined]
            return (reply(200, contract()) if allowed else reply(401, {}))(connection, received)  # type: ignore[arg-type]

        server.script = [service(None, act)]
        assert doctor(server.url).status == 0

    def test_a_base_url_that_ends_with_api(self, doctor: Doctor) -> None:
        with MockServer() as mock:
            assert doctor(f"{mock.url}/api/", mock.api_key).status == 0


FAILED = {"at": "2026-09-28T13:00:00.000Z", "message": "The receiver responded with 500."}


class TestEndpoints:
    def test_a_disabled_endpoint(self, doctor: Doctor, server: ScriptedServer) -> None:
        server.script = [service(None, None, listed({"status": "disabled"}))]
        found = doctor(server.url)
        assert found.status == 1
        (problem,) = found.problems
        assert problem == (
            "endpoints we_1 (clinic.example) is disabled: nothing is sent to it. Enable it: followup webhook-endpoints "
            "update we_1 --no-disabled"
        )

    @pytest.mark.parametrize("delivered", [None, "2026-09-28T12:00:00.000Z"])
    def test_a_failing_endpoint(self, doctor: Doctor, server: ScriptedServer, delivered: str | None) -> None:
        server.script = [service(None, None, listed({"lastDeliveredAt": delivered, "lastError": FAILED}))]
        found = doctor(server.url)
        assert found.status == 1
        (problem,) = found.problems
        assert problem.startswith("endpoints we_1 (clinic.example) fails: The receiver responded with 500. (2026-09-28")
        assert ("never delivered" in problem) == (delivered is None)

    def test_an_error_that_quotes_the_request(self, doctor: Doctor, server: ScriptedServer) -> None:
        quoted = {**FAILED, "message": f"no patient +54 9 11 5555-0000, {KEY}"}
        server.script = [service(None, None, listed({"lastDeliveredAt": None, "lastError": quoted}))]
        assert "fails: no patient …, fu_test_… (" in doctor(server.url).of("endpoints")

    def test_an_endpoint_that_has_recovered(self, doctor: Doctor, server: ScriptedServer) -> None:
        recovered = {"lastDeliveredAt": "2026-09-28T14:00:00.000Z", "lastError": FAILED}
        server.script = [service(None, None, listed(recovered))]
        found = doctor(server.url)
        assert found.status == 0
        assert found.of("endpoints").startswith("OK we_1 (clinic.example): last delivered 2026-09-28")

    def test_an_endpoint_without_deliveries(self, doctor: Doctor, server: ScriptedServer) -> None:
        server.script = [service(None, None, listed({"lastDeliveredAt": None}))]
        found = doctor(server.url)
        assert found.status == 0
        assert found.of("endpoints").startswith("OK we_1 (clinic.example): never delivered")

    def test_each_endpoint_has_its_line(self, doctor: Doctor, server: ScriptedServer) -> None:
        server.script = [service(None, None, listed({}, {"id": "we_2", "status": "disabled"}, more=True))]
        found = doctor(server.url)
        assert [outcome for outcome, check, _ in found.lines if check == "endpoints"] == ["OK", "FAIL", "OK"]
        assert found.lines[-1][2] == "only the newest 100 endpoints were checked"
        assert server.received[-1].target == "/v1/webhook_endpoints?limit=100"

    @pytest.mark.parametrize(
        ("action", "reason"),
        [
            (error(500, "api_error", "internal", "Something failed."), "500 api_error (internal): Something failed."),
            (reply(200, {"data": 1}, headers()), "data is not an array"),
            (hang_up, "no response (RemoteProtocolError)"),
        ],
    )
    def test_endpoints_that_cannot_be_listed(
        self, doctor: Doctor, server: ScriptedServer, action: Action, reason: str
    ) -> None:
        server.script = [service(None, None, action)]
        found = doctor(server.url)
        assert found.status == 1
        (problem,) = found.problems
        assert problem.startswith(f"endpoints cannot be listed: {reason}")
