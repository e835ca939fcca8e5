"""Set-ups that are broken before anything is sent: the environment variables."""

import pytest
from support.doctor import KEY, SECRET, Doctor
from support.ports import free_port
from support.server import ScriptedServer
from support.services import service

URL = "https://api.example.com"

BASE_URLS = {
    "unset": (None, "FOLLOWUP_BASE_URL is not set"),
    "empty": (" ", "FOLLOWUP_BASE_URL is not set"),
    "in quotes": (f'"{URL}"', "FOLLOWUP_BASE_URL has quotes in its value"),
    "with a line end of Windows": (f"{URL}\r", "FOLLOWUP_BASE_URL begins or ends with a space or a line break"),
    "a placeholder": ("<URL of the service>", "FOLLOWUP_BASE_URL is a placeholder"),
    "not expanded": ("${BASE_URL}", "FOLLOWUP_BASE_URL is a placeholder"),
    "without a scheme": ("api.example.com", "FOLLOWUP_BASE_URL has no scheme"),
    "of another scheme": ("ftp://api.example.com", "FOLLOWUP_BASE_URL is invalid"),
    "with /v1": (f"{URL}/v1", "FOLLOWUP_BASE_URL contains /v1, which is appended to it"),
    "of an operation": (f"{URL}/api/v1/account", "FOLLOWUP_BASE_URL contains /v1, which is appended to it"),
    "with a password": ("https://user:hidden@api.example.com", "FOLLOWUP_BASE_URL is invalid"),
    "with a query": (f"{URL}?a=b", "FOLLOWUP_BASE_URL is invalid"),
    "with a broken address": ("https://[bad/", "FOLLOWUP_BASE_URL is invalid"),
    "with a space inside": ("https://api example.com", "FOLLOWUP_BASE_URL is invalid"),
}

KEYS = {
    "unset": (None, "FOLLOWUP_API_KEY is not set"),
    "in quotes": (f"'{KEY}'", "FOLLOWUP_API_KEY has quotes in its value"),
    "with a quote at its end": (f"{KEY}'", "FOLLOWUP_API_KEY has quotes in its value"),
    "with a line break inside": (f"{KEY}\n{KEY}", "FOLLOWUP_API_KEY is invalid"),
    "with a space at its beginning": (f" {KEY}", "FOLLOWUP_API_KEY begins or ends with a space"),
    "with the word Bearer": (f"Bearer {KEY}", 'FOLLOWUP_API_KEY begins with "Bearer"'),
    "the secret of an endpoint": (SECRET, "FOLLOWUP_API_KEY is the secret of a webhook endpoint (whsec_...)"),
    "a placeholder": ("<your key>", "FOLLOWUP_API_KEY is a placeholder"),
    "with an invisible character": (f"{KEY}\u200b", "FOLLOWUP_API_KEY is invalid"),
}


@pytest.mark.parametrize(("value", "expected"), BASE_URLS.values(), ids=BASE_URLS)
def test_a_base_url_that_cannot_be_used(doctor: Doctor, value: str | None, expected: str) -> None:
    found = doctor(value)
    assert found.status == 1
    (problem,) = found.problems
    assert problem.startswith(f"environment {expected}")
    assert "hidden" not in problem
    (not_checked,) = found.not_checked
    assert not_checked.startswith(
        f"DNS, TCP, TLS, service, clock, key, mode, scopes, lines, version, contract, endpoints ({expected}"
    )


@pytest.mark.parametrize(("value", "expected"), KEYS.values(), ids=KEYS)
def test_a_key_that_cannot_be_used(doctor: Doctor, server: ScriptedServer, value: str | None, expected: str) -> None:
    server.script = [service()]
    found = doctor(server.url, value)
    assert found.status == 1
    (problem,) = found.problems
    assert problem.startswith(f"environment {expected}")
    (not_checked,) = found.not_checked
    assert not_checked.startswith(f"key, mode, scopes, lines, version, contract, endpoints ({expected}")
    assert {each.headers["authorization"] for each in server.received} == {"Bearer none"}


def test_a_service_that_cannot_be_reached_is_reported_whatever_the_key_is(doctor: Doctor) -> None:
    found = doctor(f"http://127.0.0.1:{free_port()}", None)
    assert found.status == 2
    assert [each.partition(" ")[0] for each in found.problems] == ["environment", "TCP"]


def test_a_key_in_the_place_of_the_base_url(doctor: Doctor) -> None:
    found = doctor(KEY, "https://clinic.example")
    assert found.status == 1
    assert found.problems[0].startswith("environment FOLLOWUP_BASE_URL has no scheme")
    assert all(KEY not in text for _, _, text in found.lines)


@pytest.mark.parametrize("secret", [KEY, f"{SECRET},{KEY}", f'"{SECRET}"', f"{SECRET}\n"])
def test_a_secret_that_is_none(doctor: Doctor, server: ScriptedServer, secret: str) -> None:
    server.script = [service()]
    found = doctor(server.url, FOLLOWUP_WEBHOOK_SECRET=secret)
    assert found.status == 1
    (problem,) = found.problems
    assert problem.startswith("environment FOLLOWUP_WEBHOOK_SECRET ")


def test_secrets_of_a_rotation(doctor: Doctor, server: ScriptedServer) -> None:
    server.script = [service()]
    assert doctor(server.url, FOLLOWUP_WEBHOOK_SECRET=f"{SECRET},{SECRET}").status == 0


@pytest.mark.parametrize(
    ("variable", "value", "problem"),
    [
        ("SSL_CERT_FILE", "/nowhere/missing.pem", "the certificates that SSL_CERT_FILE or SSL_CERT_DIR names"),
        ("HTTPS_PROXY", "http://user:hidden@proxy:port", "the proxy in HTTPS_PROXY"),
        ("FOLLOWUP_TELEMETRY", "no", "FOLLOWUP_TELEMETRY must be"),
    ],
)
def test_a_variable_that_no_client_accepts(doctor: Doctor, variable: str, value: str, problem: str) -> None:
    found = doctor(URL, **{variable: value})
    assert found.status == 1
    assert len(found.problems) == 1
    assert found.problems[0].lower().startswith(f"environment {problem}".lower())  # Windows knows no case of names
    assert found.not_checked[0].endswith("(the environment cannot be used).")
    assert "hidden" not in found.problems[0]


def test_a_remote_proxy_for_a_mock_on_this_computer(doctor: Doctor) -> None:
    doctor.names(proxy_example=["127.0.0.1"])
    port = free_port()
    found = doctor(f"http://127.0.0.1:{port}", HTTP_PROXY=f"http://user:hidden@proxy.example:{port}")
    assert found.problems[0] == (
        f"environment requests to 127.0.0.1 go through the proxy proxy.example:{port}, but 127.0.0.1 is this computer. "
        "Set NO_PROXY=127.0.0.1."
    )
    assert "hidden" not in str(found.lines)
