"""Snapshots whose history nobody could have lived: nothing hangs, nothing fails, and no page grows without end."""

import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from followup import FollowUp
from followup_mockserver import MockService
from followup_mockserver.control.occurrences import HistoryEntry
from followup_mockserver.pytest_plugin.failure_report import summary_of
from followup_mockserver.world.schema.errors import ServiceError
from followup_mockserver.world.state.snapshots.codecs import SnapshotError

from .conftest import ANA, HOOKS, NOON
from .html import Views, text_of

MOST_RECORDS = 50_000
RESET = {"kind": "other", "reason": "reset"}
VIEWS = {"pat": "patients", "apt": "appointments", "whd": "webhook_deliveries", "evt": "events", "req": "calls"}
LISTS = ["overview", "calls", "outbound_events", "webhook_deliveries", "webhook_endpoints", "events", "clock"]

Columns = dict[str, list[Any]]
Edit = Callable[[Columns], None]


@pytest.fixture
def state(service: MockService, client: FollowUp) -> dict[str, Any]:
    """The snapshot of a mock with an appointment, its reminders, and deliveries that fail."""
    service.mount(HOOKS, lambda _: httpx.Response(500))
    client.webhook_endpoints.create(url=HOOKS, enabled_events=["*"])
    client.appointments.create(patient={"phone": ANA["phone"], "full_name": "Ana"}, start_at="2026-10-01T12:00:00Z")
    client.events.create({"id": "e1", "type": "order.issued", "data": {}})
    service.advance(days=2)
    return dict(service.save())


def loaded(state: dict[str, Any], edit: Edit) -> MockService:
    """Return a mock from the snapshot with an edited history."""
    history = state["organizations"][0]["history"]
    columns, known = history["records"], [None, *history["outcomes"]]
    receipts = zip(*history["receipts"].values(), strict=True)
    columns["outcome"] = [known[number] for number in columns["outcome"]]
    columns["receipts"] = [[*itertools.islice(receipts, count)] for count in columns["receipts"]]
    edit(columns)
    history["outcomes"] += [each or RESET for each in columns["outcome"]]
    columns["outcome"] = [number if each else 0 for number, each in enumerate(columns["outcome"], start=len(known))]
    rows = [*itertools.chain.from_iterable(columns["receipts"])]
    history["receipts"] = {name: [row[n] for row in rows] for n, name in enumerate(history["receipts"])}
    columns["receipts"] = [*map(len, columns["receipts"])]
    return MockService.load(state)


def add(columns: Columns, **values: Any) -> None:
    """Add a record."""
    record = {
        "at": NOON, "kind": "reminder", "id": "job_900", "cause": None, "outcome": None, "about": None,
        "patient": None, "due": "2026-09-30T12:00:00Z", "hours": None, "receipts": [],
    } | values  # fmt: skip
    assert record.keys() == columns.keys()
    for name, value in record.items():
        columns[name].append(value)


def appointment_in(columns: Columns) -> str:
    return next(str(each) for each in columns["id"] if each.startswith("apt_"))


def ids_in(service: MockService) -> list[str]:
    records = service._tenant.history.records
    found = {each.id for each in records} | {each.cause for each in records if each.cause}
    messages = {each.id for each in service.messages}
    return sorted(found | messages | {each.id for each in service.deliveries} - {""})


def pages_of(service: MockService) -> Iterator[str]:
    yield from LISTS
    for each in ids_in(service):
        yield f"{VIEWS.get(each.partition('_')[0], 'history')}/{each}"


def check(service: MockService) -> None:
    """Check that every chain is in order, and that every page and the report of a failing test can be made."""
    for name in ids_in(service):
        before: set[str | None] = {None}
        for entry in explained(service, name):
            assert entry.cause in before, (name, entry)
            before.add(entry.id)
    views = Views(service)
    for page in pages_of(service):
        assert views.api.get(f"/_mock/views/{page}").status_code in (200, 404), page
    assert "webhook deliveries" in summary_of(service)


def explained(service: MockService, name: str) -> list[HistoryEntry]:
    try:
        return service.explain(name)
    except ServiceError:  # it is only a cause, which does not exist
        return []


def control_calls_that_cause_each_other(columns: Columns) -> None:
    for one, other in (("ctl_901", "ctl_902"), ("ctl_902", "ctl_901"), ("ctl_903", "ctl_903")):
        add(columns, kind="control", id=one, cause=other, outcome=RESET, due=None)


def jobs_that_cause_each_other(columns: Columns) -> None:
    for one, other in (("job_901", "job_902"), ("job_902", "job_901"), ("job_903", "job_903")):
        add(columns, id=one, cause=other)
    for position, kind in enumerate(columns["kind"]):
        if kind in ("message", "attempt", "patient.upserted"):
            columns["cause"][position] = "job_901"


def everything_causes_the_one_before(columns: Columns) -> None:
    columns["cause"] = [*columns["id"][1:], columns["id"][0]]


def causes_that_do_not_exist(columns: Columns) -> None:
    prefixes = ("req_", "job_", "ctl_", "evt_", "", "nothing")
    columns["cause"] = [f"{prefixes[each % 6]}x{each}" for each in range(len(columns["id"]))]


def objects_that_do_not_exist(columns: Columns) -> None:
    columns["about"] = ["apt_x"] * len(columns["id"])
    columns["patient"] = ["pat_x"] * len(columns["id"])
    columns["receipts"] = [[["we_x", "whd_x", 0], [None, None, 0], [None, "whd_x", 0]]] * len(columns["id"])


def empty_ids(columns: Columns) -> None:
    columns["id"] = ["" if position % 2 else "job_" for position in range(len(columns["id"]))]


def impossible_hours(columns: Columns) -> None:
    hours = [1e300, -1e300, 99999999999, 0.1]
    columns["hours"] = [hours[position % 4] for position in range(len(columns["id"]))]


def the_ends_of_time(columns: Columns) -> None:
    columns["at"] = [
        "0002-01-01T00:00:00Z" if each % 2 else "2199-12-31T23:59:59Z" for each in range(len(columns["id"]))
    ]
    columns["due"] = [None if each % 3 else "0002-01-01T00:00:00Z" for each in range(len(columns["id"]))]


@pytest.mark.parametrize(
    "edit",
    [
        control_calls_that_cause_each_other,
        jobs_that_cause_each_other,
        everything_causes_the_one_before,
        causes_that_do_not_exist,
        objects_that_do_not_exist,
        empty_ids,
        impossible_hours,
        the_ends_of_time,
    ],
)
def test_every_chain_has_an_order_and_every_page_is_shown(state: dict[str, Any], edit: Edit) -> None:
    check(loaded(state, edit))


def test_an_impossible_time_of_an_error(state: dict[str, Any]) -> None:
    state["organizations"][0]["webhookEndpoints"][0]["lastError"] = {"at": "2026-02-30T12:00:00.000Z", "message": "x"}
    with pytest.raises(SnapshotError, match=r"webhookEndpoints\[0\]\.lastError\.at: This must be an RFC 3339"):
        MockService.load(state)


def chain_of_jobs(columns: Columns) -> None:
    """Let each of 50,000 jobs cause the next one at once."""
    appointment = appointment_in(columns)
    for column in columns.values():
        column.clear()
    for number in range(MOST_RECORDS):
        add(columns, id=f"job_{number}", cause=f"job_{number - 1}", about=appointment)


def jobs_of_one_call(columns: Columns) -> None:
    """Let one control call cause 49,999 jobs."""
    appointment = appointment_in(columns)
    for column in columns.values():
        column.clear()
    add(columns, kind="control", id="ctl_1", outcome=RESET, due=None)
    for number in range(1, MOST_RECORDS):
        add(columns, id=f"job_{number}", cause="ctl_1", about=appointment)


@pytest.mark.parametrize("edit", [chain_of_jobs, pytest.param(jobs_of_one_call, marks=pytest.mark.nightly)])
def test_a_full_history_has_pages_of_a_limited_size(state: dict[str, Any], edit: Edit) -> None:
    service = loaded(state, edit)
    appointment = service._tenant.history.records[-1].about or ""
    assert len(service.explain(appointment)) >= MOST_RECORDS - 1
    views = Views(service)
    for page in (f"appointments/{appointment}", "history/job_1", "overview", "search?q=job_1"):
        response = views.api.get(f"/_mock/views/{page}")
        assert response.status_code == 200, page
        assert response.text.count("<li") < 2_000, page


class TestLimits:
    @pytest.fixture
    def views(self, state: dict[str, Any]) -> Views:
        """The views of a mock with a control call that has caused 120 jobs, which are due later."""

        def edit(columns: Columns) -> None:
            add(columns, kind="control", id="ctl_900", outcome=RESET, due=None, at="2026-09-30T11:00:00Z")
            appointment = appointment_in(columns)
            for number in range(1_000, 1_120):
                add(columns, id=f"job_{number}", cause="ctl_900", about=appointment, due="2026-10-30T12:00:00Z")

        return Views(loaded(state, edit))

    def test_the_page_of_a_control_call_has_the_first_jobs_and_links_the_others(self, views: Views) -> None:
        page = "history/ctl_900"
        assert "120 reminders : planned" in views.text(page)
        assert views.html(page).count('data-key="reminder ') == 100
        assert views.link(page, "Show 20 later entries") == f"{page}?timeline=all"
        assert views.html(f"{page}?timeline=all").count('data-key="reminder ') == 120

    def test_so_are_the_messages_of_a_patient(self, state: dict[str, Any]) -> None:
        def edit(columns: Columns) -> None:
            appointment = appointment_in(columns)
            for number in range(1_000, 1_250):
                add(columns, id=f"job_{number}", about=appointment, due="2026-10-30T12:00:00Z")

        service = loaded(state, edit)
        views = Views(service)
        (appointment,) = service._tenant.appointments
        page = f"patients/{appointment.patient}"
        for query, lines in (("", 200), ("?timeline=all", 253)):
            phone = views.html(page + query).partition('class="phone"')[2].partition("</section>")[0]
            assert len(re.findall(r'<li class="[^"]*" data-key', phone)) == lines
            assert ("Show 53 earlier" in text_of(phone)) is (lines == 200)
