"""``followup-mock check``: the sources of a document, the report, and the exit status."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from drift.documents import Document, component, operation, parameter, request, served_document
from support.ports import free_port
from support.server import ScriptedServer, drip, hang, reply

from followup_mockserver import MockServer
from followup_mockserver.cli.app import app
from followup_mockserver.cli.judge import lines_of
from followup_mockserver.lab import contract_document
from followup_mockserver.lab.contract_check import compare_document

Check = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def check(capsys: pytest.CaptureFixture[str]) -> Check:
    """Run the command in this process, which starts faster."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        with pytest.raises(SystemExit) as ended:
            app.run(["check", *arguments])
        output, errors = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, ended.value.code or 0, output, errors)  # type: ignore[arg-type]

    return run


def changed() -> Document:
    """Return a contract with a difference of each class."""
    document = served_document()
    request(document, "POST /v1/treatments")["properties"]["kind"]["enum"].remove("diet")
    request(document, "POST /v1/treatments")["properties"]["kind"]["enum"].append("surgery")
    component(document, "Account")["properties"]["logo"] = {"type": "string"}
    operation(document, "GET /v1/account")["summary"] = "Who am I?"
    return document


@pytest.fixture
def file(tmp_path: Path) -> Callable[[Any], str]:
    def write(content: Any) -> str:
        path = tmp_path / "contract.json"
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return str(path)

    return write


class TestReport:
    def test_a_contract_without_differences(self, check: Check, file: Callable[[Any], str]) -> None:
        result = check(file(served_document()))
        assert (result.returncode, result.stderr) == (0, "")
        assert result.stdout == "No differences: SDK and mock fit this contract.\n"

    def test_as_json(self, check: Check, file: Callable[[Any], str]) -> None:
        result = check(file(changed()), "--json")
        assert (result.returncode, result.stderr) == (1, "")
        report = json.loads(result.stdout)
        assert {name: report[name] for name in report if name != "differences"} == {
            "breaking": 1,
            "mockDiffers": 1,
            "added": 1,
            "wording": 1,
        }
        assert [set(each) for each in report["differences"]] == [{"class", "where", "detail", "witness"}] * 4
        assert report["differences"][0] == {
            "class": "breaking",
            "where": "POST /v1/treatments request body.kind",
            "detail": 'enum: the contract lacks "diet"',
            "witness": None,
        }
        assert [each["class"] for each in report["differences"]] == ["breaking", "mock differs", "added", "wording"]

    def test_the_same_difference_in_many_places_is_shown_once(self, check: Check, file: Callable[[Any], str]) -> None:
        document = served_document()
        component(document, "Error")["properties"]["error"]["required"].remove("code")
        lines = check(file(document)).stdout.splitlines()
        assert lines[0].startswith("breaking: ")
        assert int(lines[0].removeprefix("breaking: ")) > 200
        assert len(lines) < 15

    def test_additions_and_texts_are_compatible(self, check: Check, file: Callable[[Any], str]) -> None:
        document = served_document()
        document["paths"]["/v1/rooms"] = {"get": {"responses": {}}}
        document["info"]["title"] = "Another title"
        result = check(file(document))
        assert result.returncode == 0
        assert result.stdout.endswith("0 breaking, 0 mock differs, 1 added, 1 wording\n")

    def test_long_values_are_shortened(self, check: Check, file: Callable[[Any], str]) -> None:
        document = served_document()
        request(document, "POST /v1/patients")["properties"]["fullName"]["pattern"] = "a" * 2_000
        shown = check(file(document)).stdout
        assert "aaa…" in shown
        assert len(shown) < 500

    def test_control_characters_of_a_document_are_escaped(self, check: Check, file: Callable[[Any], str]) -> None:
        document = served_document()
        document["paths"]["/v1/\x1b[31mred"] = {"get": {"responses": {}}}
        for arguments in ([], ["--json"]):
            result = check(file(document), *arguments)
            assert "\x1b" not in result.stdout
            assert "[31mred" in result.stdout


class TestSources:
    def test_standard_input(self) -> None:
        command = [sys.executable, "-m", "followup_mockserver", "check", "-"]
        subprocess.run(command, input=json.dumps(served_document()).encode(), check=True, timeout=60)

    def test_a_byte_order_mark(self, check: Check, file: Callable[[Any], str]) -> None:
        assert check(file(b"\xef\xbb\xbf" + json.dumps(served_document()).encode())).returncode == 0

    def test_the_url_of_a_mock(self, check: Check) -> None:
        with MockServer() as server:
            assert check(f"{server.url}/api/v1/openapi.json").returncode == 0

    def test_a_url_is_asked_without_a_key(self, check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("FOLLOWUP_API_KEY", "sk_test_secret")
        with ScriptedServer() as server:
            server.script = [reply(200, served_document())]
            assert check(server.url).returncode == 0
        (request,) = server.received
        assert "authorization" not in request.headers
        assert "secret" not in str(request)


PROBLEMS: dict[str, tuple[Any, str]] = {
    "no JSON": (b"{", "it is not JSON"),
    "empty": (b"", "it is not JSON"),
    "HTML": (b"<!doctype html><html></html>", "it is a web page, not JSON"),
    "YAML": (b"openapi: 3.1.0\npaths: {}\n", "it is YAML"),
    "not UTF-8": (b'"\xff"', "it must be UTF-8"),
    "nested too deeply": (b"[" * 200 + b"]" * 200, "it is nested too deeply"),
    "nested far too deeply": (b"[" * 200_000, "it is nested too deeply"),
    "a list": ([], "it is not an OpenAPI document"),
    "another object": ({"paths": {}}, "it is not an OpenAPI document"),
    "Swagger 2": (
        {"swagger": "2.0", "paths": {"/v1/account": {}}},
        "it is a document of version 2.0; convert it to OpenAPI 3",
    ),
    "OpenAPI 4": ({"openapi": "4.0.0", "paths": {"/v1/account": {}}}, "it is a document of version 4.0.0"),
    "no version": ({"openapi": None, "paths": {}}, "it is a document of version None"),
    "no paths": ({"openapi": "3.1.0"}, "it has no paths"),
    "paths that are a list": ({"openapi": "3.1.0", "paths": []}, "paths must be an object"),
}


def broken(part: Any) -> Document:
    """Return our contract with this schema as that of the account."""
    document = served_document()
    document["components"]["schemas"]["Account"] = part
    return document


MALFORMED: dict[str, tuple[Any, str]] = {
    "a schema that is a text": (broken("text"), "a schema must be an object"),
    "an unknown type": (broken({"type": "text"}), "there is no type text"),
    "a type that is a number": (broken({"type": 1}), "type must be an array of strings"),
    "a required object": (broken({"required": [{}]}), "required must be an array of strings"),
    "an enum that is no list": (broken({"enum": "a"}), "enum must be an array"),
    "a limit that is a text": (broken({"maxLength": "9"}), "maxLength must be a number"),
    "properties that are a list": (broken({"properties": []}), "properties must be an object"),
    "a union that is no list": (broken({"anyOf": {}}), "anyOf must be an array"),
    "a reference without target": (broken({"$ref": "#/components/schemas/Nothing"}), "has no target"),
    "a reference to another file": (broken({"$ref": "account.json#/Account"}), "leads out of the document"),
    "a reference to an anchor": (broken({"$ref": "#account"}), "is not a path"),
    "a reference that is a number": (broken({"$ref": 1}), "leads out of the document"),
    "a dynamic reference": (broken({"$dynamicRef": "#account"}), "$dynamicRef is not supported"),
}


class TestProblems:
    @pytest.mark.parametrize("name", [*PROBLEMS, *MALFORMED])
    def test_a_document_that_cannot_be_read(self, check: Check, name: str, file: Callable[[Any], str]) -> None:
        content, reason = (PROBLEMS | MALFORMED)[name]
        path = file(content)
        result = check(path)
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr.startswith(f"followup-mock: cannot read {path}: ")
        assert result.stderr.count("\n") == 1
        assert reason in result.stderr

    def test_a_missing_file(self, check: Check, tmp_path: Path) -> None:
        result = check(str(tmp_path / "nothing.json"))
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr.startswith(f"followup-mock: cannot read {tmp_path / 'nothing.json'}: ")

    @pytest.mark.parametrize("source", [["/"], [], ["http://["]], ids=["a folder", "none", "an invalid URL"])
    def test_what_is_no_source(self, check: Check, source: list[str]) -> None:
        assert check(*source).returncode == 2

    @pytest.mark.parametrize("status", [401, 404, 500])
    def test_a_url_that_responds_with_an_error(self, check: Check, status: int) -> None:
        with ScriptedServer() as server:
            server.script = [reply(status, {})]
            result = check(server.url)
        assert (result.returncode, result.stdout) == (2, "")
        assert f"the server responded with {status}" in result.stderr

    def test_a_url_that_does_not_respond(self, check: Check) -> None:
        result = check(f"http://127.0.0.1:{free_port()}/")
        assert (result.returncode, result.stdout) == (2, "")
        assert "no response" in result.stderr

    @pytest.mark.parametrize(
        "late", [hang, drip, lambda released: drip(released, headers=True)], ids=["hang", "drip", "headers"]
    )
    def test_a_download_that_is_too_slow(
        self, check: Check, monkeypatch: pytest.MonkeyPatch, late: Callable[[Any], Any]
    ) -> None:
        monkeypatch.setattr(contract_document, "TIMEOUT", 0.2)
        with ScriptedServer() as scripted:
            scripted.script = [late(scripted.released)]
            result = check(scripted.url)
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr.count("\n") == 1
        assert "no response within 0.2 s" in result.stderr


PAGE = Path(__file__).parents[2] / "docs/how-to/contract-drift.md"


def test_the_output_on_the_page_is_real() -> None:
    document = served_document()
    parameter(document, "GET /v1/patients", "limit")["schema"]["maximum"] = 50
    component(document, "Doctor")["properties"]["fullName"]["type"] = ["string", "null"]
    request(document, "POST /v1/treatments")["properties"]["kind"]["enum"].append("surgery")
    request(document, "POST /v1/treatments")["properties"]["priority"] = {"type": "integer"}
    operation(document, "GET /v1/account")["summary"] = "Who am I?"
    (shown,) = re.findall(r"^```text\n(breaking: .*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert shown.splitlines() == [*lines_of(compare_document(document))]
