"""The page for the security officer: its tables have every field, table and package, and its promises are tried."""

import importlib.metadata
import inspect
import json
import logging
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import get_type_hints

import attrs
import pytest
from packaging.requirements import Requirement
from support.pages import ROOT, read, section
from telemetry.planting import MARKS

import followup
from followup import FollowUp, inbound
from followup._store.dialects import SQLITE
from followup.imports import state
from followup.inbox import Inbox
from followup.outbox import Outbox
from followup_mockserver import MockServer

PAGE = read("security-officer.md")
LEAVES = section(PAGE, "What leaves the clinic, and to whom")
GROUPS = (
    "account", "patients", "doctors", "appointments", "visits", "intake_requests", "treatments", "events",
    "webhook_endpoints", "webhook_deliveries",
)  # fmt: skip
OBJECTS = {
    "patient": followup.PatientInput,
    "contacts": followup.ContactInput,
    "coverage": followup.CoverageInput,
    "sender": followup.SenderInput,
    "doctor": followup.DoctorInput,
    "source": followup.EventSourceInput,
}
NOT_DATA = {"self", "idempotency_key", "events", "max_rounds"}
LICENCES = {
    "Apache-2.0": "Apache",
    "BSD-3-Clause": "BSD|Redistribution and use",
    "BSD-3-Clause AND ISC": "BSD",
    "LGPL-3.0-only": "LGPL-?v?3",
    "MIT": "MIT",
    "MPL-2.0": "MPL|Mozilla",
    "ZPL-2.1": "ZPL 2.1",
}
"""By licence on the page, what the metadata of a package says, in its lowest version too."""


def table(first: str, text: str = PAGE) -> list[list[str]]:
    """Return the rows of the table whose header begins with this cell."""
    found = re.search(rf"^\| {first} \|.*\n\|[-|]+\|\n((?:\|.*\n?)+)", text, re.MULTILINE)
    assert found, first
    return [[cell.strip() for cell in row.strip("| ").split(" | ")] for row in found[1].splitlines()]


def names(cell: str) -> set[str]:
    return set(re.findall(r"`([^`]+)`", cell))


def parameters(group: str) -> set[str]:
    """Return the parameters of the operations of a group that write or retrieve."""
    kind = type(getattr(FollowUp(api_key="k", base_url="http://127.0.0.1"), group))
    operations = [name for name in dir(kind) if not name.startswith("_") and name != "list"]
    return {each for name in operations for each in inspect.signature(getattr(kind, name)).parameters} - NOT_DATA


def of_events() -> set[str]:
    return {each for name in inbound.__all__ for each in inspect.signature(getattr(inbound, name)).parameters}


def sent() -> Iterator[str]:
    """Yield each field that the operations and the inbound events can send."""
    of_group = {group: parameters(group) for group in GROUPS}
    yield from (f"patient.{each}" for each in of_group.pop("patients") - {"id"})
    for name in set().union(*of_group.values(), of_events()):
        if name in OBJECTS:
            yield from (f"{name}.{key}" for key in get_type_hints(OBJECTS[name]))
        if name not in OBJECTS or name in ("patient", "doctor"):  # also an id
            yield name


def test_every_field_that_can_leave_is_on_the_page_with_its_kind() -> None:
    rows = table("field", LEAVES)
    listed = [name for row in rows for name in names(row[0])]
    assert len(listed) == len(set(listed)) == len(rows)
    assert set(listed) == set(sent())
    assert {row[2] for row in rows} == {"identity", "health", "case", "staff", "technical"}


def test_what_each_group_sends_is_on_the_page() -> None:
    listed = {name: names(row[1]) for row in table("what your program uses") for name in names(row[0])}
    assert set(listed) == set(GROUPS)
    sending = {group: parameters(group) - {"id"} for group in GROUPS}
    assert listed.pop("patients") == {"patient"}
    assert sending.pop("patients") == set(get_type_hints(followup.PatientInput))
    events = listed.pop("events")
    assert listed == {group: sending[group] for group in listed}
    assert (
        of_events() - {"id", "occurred_at", "source"}
        == set().union(events, *listed.values()) - (sending["webhook_endpoints"])
    )


def test_what_the_page_calls_hidden_is_hidden_when_it_is_displayed() -> None:
    rows = table("object")
    for name, hidden, displayed in ((row[0].strip("`"), names(row[1]), names(row[2])) for row in rows):
        fields = [each for each in attrs.fields(getattr(followup, name)) if each.name not in ("extra", "last_response")]
        assert {each.name for each in fields if not each.repr} == hidden, name
        assert {each.name for each in fields if each.repr} - {"object"} == displayed, name
    results = {cls.__name__ for cls in vars(followup).values() if inspect.isclass(cls) and hasattr(cls, "to_json")}
    of_others = {"ApiKey", "DeletedObject", "DeliveryFailure", "EventBatch", "EventOutcome", "WebhookEvent"}
    assert {row[0].strip("`") for row in rows} == results - of_others


def test_what_identifies_a_patient_or_tells_about_health_is_hidden() -> None:
    kinds = {name: row[2] for row in table("field", LEAVES) for name in names(row[0])}
    hidden = {(row[0].strip("`"), name) for row in table("object") for name in names(row[1])}
    of_patient = {("Patient", name.partition(".")[2]) for name in kinds if name.startswith("patient.")}
    of_care = {("Visit", name) for name in ("type", "diagnosis", "notes")} | {
        ("Treatment", name) for name in ("name", "dosage", "frequency", "instructions")
    }
    assert of_patient | of_care <= hidden
    assert {kinds[name] for _, name in of_care} == {"health"}
    assert {kinds[f"patient.{name}"] for _, name in of_patient} == {"identity"}


def test_every_table_of_the_stores_is_on_the_page() -> None:
    ddl = Outbox("sqlite:///x.db").ddl() + Inbox("sqlite:///x.db").ddl()
    tables = set(re.findall(r"CREATE TABLE IF NOT EXISTS (\w+)", ddl + state.SCHEMA.ddl(SQLITE)))
    stored = section(PAGE, "What is stored where")
    assert tables == {name for row in table("where", stored) for name in names(row[0]) if name.startswith("followup_")}


def test_every_required_package_is_on_the_page_with_versions_extras_and_licence() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    required: dict[str, tuple[str, set[str]]] = {}
    for extra, requirements in [("always", project["dependencies"]), *project["optional-dependencies"].items()]:
        for each in map(Requirement, requirements):
            if each.name != "followup":
                _, extras = required.setdefault(each.name, (str(each.specifier), set()))
                extras.add(extra)
    listed = {}
    for name, versions, _, licence, extras in table("package"):
        listed[name] = (str(Requirement(f"x{versions.strip('`')}").specifier), names(extras) or {extras})
        metadata = importlib.metadata.metadata(name)
        stated = [
            *(metadata.get_all("Classifier") or []),
            *map(str, map(metadata.get, ("License-Expression", "License"))),
        ]
        assert re.search(LICENCES[licence], " ".join(stated)), name
    required["sqlalchemy"][1].add("import")  # includes the extra `store`
    assert listed == required


def test_nothing_but_the_service_is_contacted_and_no_log_names_a_patient(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)  # of the mock
    command = [sys.executable, "-m", "support.watched_program"]
    with MockServer(rate_limit=0) as server:
        variables = {"FOLLOWUP_BASE_URL": server.url, "FOLLOWUP_API_KEY": server.api_key}
        environment = {**os.environ, **variables, "PYTHONPATH": str(ROOT / "tests")}
        program = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
        assert program.returncode == 0, program.stderr
        assert len({each.operation for each in server.requests}) == 32
    assert json.loads(program.stdout) == ["127.0.0.1"]
    logged = (tmp_path / "all.log").read_text() + caplog.text + program.stderr
    assert {"followup", "followup.inbox", "followup.outbox"} <= set(re.findall(r"^\w+:([\w.]+):", logged, re.MULTILINE))
    assert MARKS.findall(logged) == []
    assert not [each for each in (server.api_key, "whsec_") if each in logged]
