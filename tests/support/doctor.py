"""``followup doctor`` in this process, in an environment of its own."""

import re
import socket
from dataclasses import dataclass, field
from typing import Any

import pytest

from followup.cli import root

KEY = "fu_test_0123456789"
SECRET = "whsec_0123456789"
LINE = re.compile(r"(OK|WARN|FAIL) +(environment|[A-Z]{3}|[a-z]+) +(.*)")

VARIABLES = (
    "FOLLOWUP_BASE_URL",
    "FOLLOWUP_API_KEY",
    "FOLLOWUP_WEBHOOK_SECRET",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    *(each for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy") for each in (name, name.upper())),
)


@dataclass
class Diagnosis:
    """What the command said."""

    status: int
    lines: list[tuple[str, str, str]] = field(default_factory=list)
    """Outcome, check and text of each finding."""
    not_checked: list[str] = field(default_factory=list)

    def of(self, check: str) -> str:
        """Return the outcome and the text of the one finding of a check."""
        (found,) = (f"{outcome} {text}" for outcome, name, text in self.lines if name == check)
        return found

    @property
    def problems(self) -> list[str]:
        """Check and text of each finding that is not OK."""
        return [f"{name} {text}" for outcome, name, text in self.lines if outcome != "OK"]


class Doctor:
    """Runs the command."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def names(self, **addresses: list[str] | Exception) -> None:
        """Let these names have these addresses, or none; underscores stand for dots. No look-up leaves the computer."""
        known = {name.replace("_", "."): found for name, found in addresses.items()}
        look_up = socket.getaddrinfo

        def getaddrinfo(host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:
            found = known.get(host)
            if isinstance(found, Exception):
                raise found
            return [each for address in found or [host] for each in look_up(address, port, *args, **kwargs)]

        self._monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)

    def output(self, base_url: str | None, key: str | None = KEY, *options: str, **variables: str) -> tuple[int, str]:
        """Run the command, and return its exit status and its output. No secret is ever in it."""
        given = {"FOLLOWUP_BASE_URL": base_url, "FOLLOWUP_API_KEY": key, **variables}
        for name in {*VARIABLES, *given}:
            self._monkeypatch.delenv(name, raising=False)
        for name, value in given.items():
            if value is not None:
                self._monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit) as ended:
            root().run(["doctor", *options])
        written = self._capsys.readouterr()
        assert not written.err, written.err
        for secret in (key, variables.get("FOLLOWUP_WEBHOOK_SECRET")):
            assert not secret or secret.strip("\"' \r\n") not in written.out
        status = ended.value.code
        assert isinstance(status, int)
        return status, written.out

    def __call__(
        self, base_url: str | None, key: str | None = KEY, *, timeout: float = 10, **variables: str
    ) -> Diagnosis:
        """Run the command, and return what it said. In a pipe, each finding is one line."""
        status, output = self.output(base_url, key, "--timeout", str(timeout), **variables)
        diagnosis = Diagnosis(status)
        for line in output.splitlines():
            if line.startswith("Not checked: "):
                diagnosis.not_checked.append(line.removeprefix("Not checked: "))
                continue
            found = LINE.fullmatch(line)
            assert found, line
            diagnosis.lines.append((found[1], found[2], found[3]))
        return diagnosis
