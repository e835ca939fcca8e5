"""What ``followup-mock explain`` prints on a terminal: a tree of causes, one line each at 80 columns."""

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from support.shell import COMMAND_OF_MOCK, Shell

from followup_mockserver import MockServer

LINE = re.compile(r"(?P<at>\d{4}-\d\d-\d\d \d\d:\d\d|) *(?P<branch>[ │├└]*)(?P<text>\S.*)")


@pytest.fixture(scope="module")
def server() -> Iterator[MockServer]:
    with MockServer(start_time="2026-11-20T12:00:00Z", seed=7) as running:
        yield running


@pytest.fixture(scope="module")
def world(server: MockServer) -> SimpleNamespace:
    """A patient with three appointments, one of them moved, who opts out, and an endpoint that is disabled."""
    server.mount("https://clinic.example/hooks", lambda _: httpx.Response(204))
    server.mount("https://old.example/hooks", lambda _: httpx.Response(500))
    with server.client() as client:
        for host in ("clinic", "old"):
            old = client.webhook_endpoints.create(url=f"https://{host}.example/hooks", enabled_events=["*"])
        for host in ("lab", "x-ray"):
            client.webhook_endpoints.create(
                url=f"https://{host}.example/hooks", enabled_events=["treatment.prescribed"]
            )
        patient = client.patients.create(phone="+54 9 11 5555-0000", full_name="Marta Ríos")
        first, moved, _ = [
            client.appointments.create(patient=patient.id, start_at=server.clock.now + timedelta(days=days, hours=5))
            for days in (2, 4, 9)
        ]
        server.advance(hours=20)
        client.webhook_endpoints.update(old.id, disabled=True)
        client.appointments.update(moved.id, start_at=moved.start_at + timedelta(days=1))
        server.advance(days=2)
        server.update_patient(patient.id, opted_out=True)
        server.advance(days=2)
        failed = next(each for each in server.deliveries if each.webhook_endpoint == old.id)
        other = {"phone": "+5491155551111"}
        events = [
            {"id": "e1", "type": "patient.upserted", "data": {"patient": other}},
            {"id": "e2", "type": "visit.completed", "data": {}},
            {"id": "e3", "type": "patient.upserted", "data": {"patient": {"phone": "+5491155552222"}}},
        ]
        batch = client.events.create(events)  # type: ignore[arg-type]
    server.advance()
    return SimpleNamespace(
        patient=patient.id, first=first.id, failed=failed.id, batch=batch.last_response.request_id, old=old.id
    )


@pytest.fixture
def shell(server: MockServer, world: SimpleNamespace, tmp_path: Path) -> Shell:
    return Shell(server.url, server.api_key, tmp_path, COMMAND_OF_MOCK)


def short(identifier: str) -> str:
    prefix, _, opaque = identifier.partition("_")
    return f"{prefix}_{opaque[:4]}…{opaque[-4:]}"


def test_a_patient_is_one_page_of_80_columns(shell: Shell, world: SimpleNamespace) -> None:
    heading, *lines = shell.on_a_terminal(80, "explain", world.patient).splitlines()
    assert heading.split() == ["at", "(UTC)", "what", "outcome"]
    assert len(lines) < 45, lines
    assert all(len(line) <= 80 for line in lines), lines
    now = lines.index("— now —")
    found = [LINE.fullmatch(line) for line in lines if line != "— now —"]
    times = [each["at"] for each in found if each and each["at"]]
    assert times == sorted(times)
    assert times[: now - len(lines) + 1][-1] < "2026-11-24 18:00" < times[-1]
    shown = "\n".join(lines)
    for text in (
        "patients.create                200 ",
        "└ patient upserted             created\n",
        "├ webhook to clinic.example  delivered (204)",
        "├ webhook to old.example     stopped: endpoint disabled\n",
        "└ 2 endpoints                not subscribed",
        "├ appointment rescheduled  2026-11-24 17:00 → 2026-11-25 17:00",
        "2026-11-21 17:00  reminder (24 h)                sent   ",
        "2026-11-23 17:00  reminder (24 h)  moved: the start is now 2026-11-25 17:00",
        "2026-11-24 17:00  reminder (24 h)  not sent: the patient has opted out",
        "— now —\n2026-11-25 14:00  reminder (3 h)  will not be sent: the patient has opted out",
    ):
        assert text in shown, shown
    assert short(world.first) in shown
    assert world.first not in shown
    assert "Marta" not in shown


def test_ids_are_whole_if_they_are_asked_for_and_nothing_is_cut_within_a_word(
    shell: Shell, server: MockServer, world: SimpleNamespace
) -> None:
    for width in (60, 80, 120):
        shown = shell.on_a_terminal(width, "explain", world.patient, "--full-ids")
        words = set(shown.split())
        assert {each.id for each in server.deliveries} & words
        assert {world.first, "subscribed", "clinic.example"} <= words
        assert all(len(line) <= width for line in shown.splitlines())


def test_repeated_attempts_are_one_line_with_their_number(shell: Shell, world: SimpleNamespace) -> None:
    for width in (80, 120):
        shown = shell.on_a_terminal(width, "explain", world.failed)
        assert len(re.findall(r"└ attempt +500, 7 times", shown)) == shown.count("attempt ") == 1, shown


def test_the_events_of_a_batch_are_one_line_each(shell: Shell, world: SimpleNamespace) -> None:
    _, call, *events = shell.on_a_terminal(110, "explain", world.batch).splitlines()
    assert re.search("events.create +200, 1 of 3 events refused", call), call
    refused = events.pop(0)
    assert re.search(r"├ inbound event e2 +invalid: data.patient: ", refused), refused
    assert [line.count("inbound event") for line in events] == [1, 1]
    assert all(re.search(r"[├└] inbound event +processed; \d webhooks? delivered", line) for line in events), events
    (entry,) = (each for each in shell.json("explain", world.batch) if each["id"] == "e2")
    assert (entry["kind"], entry["cause"], entry["outcome"].partition(": ")[0]) == ("event", world.batch, "invalid")


def test_colours_say_how_things_ended_and_no_color_removes_them(shell: Shell, world: SimpleNamespace) -> None:
    styled = shell.raw_on_a_terminal(110, "explain", world.failed)
    assert "\x1b[31m500, 7 times\x1b[0m" in styled
    assert "\x1b[32m200\x1b[0m" in styled
    plain = shell.raw_on_a_terminal(110, "explain", world.failed, NO_COLOR="1")
    assert plain == re.sub(r"\x1b\[\d+m", "", styled)


def test_a_pipe_gets_the_entries_as_json(shell: Shell, server: MockServer, world: SimpleNamespace) -> None:
    entries = shell.json("explain", world.first)
    assert [each["outcome"] for each in entries] == [each.outcome for each in server.explain(world.first)]
    assert set(entries[0]) == {"at", "kind", "id", "cause", "outcome"}
    assert shell.on_a_terminal(80, "explain", world.first, "--ids").split() == [each["id"] for each in entries]
    assert "no such id" in shell.error("explain", "pat_unknown")
