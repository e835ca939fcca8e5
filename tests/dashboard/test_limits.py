"""Pages show a limited number of entries, and link the others."""

import itertools
import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from followup import FollowUp
from followup_mockserver import MockService

from .conftest import ANA, HOOKS, NOON
from .html import Views, text_of

RESET = {"kind": "other", "reason": "reset"}

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
