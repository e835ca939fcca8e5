"""Invalid arguments raise before anything is sent; the error names the argument and contains no value."""

import asyncio
import itertools
import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from support.responses import TIME
from support.server import ScriptedServer

from followup import NOT_GIVEN, AsyncFollowUp, FollowUp

NOON = datetime(2026, 9, 28, 12, tzinfo=timezone(timedelta(hours=-3)))
UUID = uuid.UUID(int=5)
EVENT: dict[str, Any] = {"id": "1", "type": "order.issued", "data": {}}


def with_data(client: Any, data: Any) -> Any:
    return client.events.create([EVENT, {**EVENT, "data": data}])


def circle() -> dict[str, Any]:
    data: dict[str, Any] = {"name": SECRET}
    data["again"] = [data]
    return data


def deep() -> dict[str, Any]:
    data: dict[str, Any] = {"name": SECRET}
    for _ in range(200_000):
        data = {"a": data}
    return data


SECRET = "Ana Pérez"
BAD = f"{SECRET}\ud800"
UNSENDABLE: list[tuple[Callable[[Any], Any], str]] = [
    (lambda c: c.patients.create(phone=BAD), "phone is not valid Unicode: it contains a lone surrogate"),
    (lambda c: c.patients.list(phone=BAD), "phone is not valid Unicode"),
    (lambda c: c.patients.list(starting_after=BAD), "starting_after is not valid Unicode"),
    (
        lambda c: c.patients.retrieve(f"pat_{BAD.replace(' ', '')}"),
        "patients.retrieve: id must have at most 255 characters, without spaces",
    ),
    (lambda c: c.appointments.create(patient={"phone": BAD}, start_at=TIME), r"patient\.phone is not valid Unicode"),
    (lambda c: c.appointments.create(patient="pat_1", start_at=BAD), "start_at is not valid Unicode"),
    (lambda c: c.patients.create(phone="1", idempotency_key=BAD), "idempotency_key must be"),
    (lambda c: c.patients.create(phone="1", idempotency_key=f"{SECRET}\n"), "idempotency_key must be"),
    (lambda c: with_data(c, {"a": [{"name": BAD}]}), r"events\[1\]\.data\.a\[0\]\.name is not valid Unicode"),
    (lambda c: with_data(c, {"name": SECRET, "id": UUID}), r"events\[1\]\.data\.id is a UUID; JSON cannot"),
    (lambda c: with_data(c, {"at": [NOON]}), r"events\[1\]\.data\.at\[0\] is a datetime"),
    (lambda c: with_data(c, {"x": float("nan")}), r"events\[1\]\.data\.x is not a finite number"),
    (lambda c: with_data(c, {"x": 10**5_000}), r"events\[1\]\.data\.x is an integer with too many digits"),
    (lambda c: with_data(c, {"x": {(SECRET,): 1}}), r"events\[1\]\.data\.x has a key that is a tuple"),
    *(
        (
            lambda c, key=key: with_data(c, {"x": [{key: SECRET}]}),
            rf"events\[1\]\.data\.x\[0\] has a key that is {kind}",
        )
        for key, kind in {1: "an int", 1.5: "a float", None: "None"}.items()
    ),
    (lambda c: with_data(c, {"x": {BAD: 1}}), r"events\[1\]\.data\.x has a key that is not valid Unicode"),
    (lambda c: with_data(c, circle()), "events is nested too deeply, or contains itself"),
    (lambda c: with_data(c, deep()), "events is nested too deeply, or contains itself"),
    (lambda c: c.events.create({**EVENT, "data": {"x": SECRET, "y": {5}}}), r"events\.data\.y is a set"),
]

REJECTED: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (lambda c: c.patients.retrieve(""), ValueError, "patients.retrieve: id must be .*; it is empty"),
    (lambda c: c.patients.retrieve(None), ValueError, "patients.retrieve: id must be .*, not None"),
    (lambda c: c.patients.retrieve("apt_1"), ValueError, "begins with 'pat_'"),
    (lambda c: c.patients.retrieve("pat_../../account"), ValueError, "without spaces, line breaks"),
    (lambda c: c.patients.retrieve("pat_1%2f"), ValueError, "without spaces, line breaks"),
    (lambda c: c.patients.create(phone="1", date_of_birth=datetime(2026, 1, 1, tzinfo=UTC)), ValueError, "a date"),
    (lambda c: c.appointments.create(patient="pat_1", start_at=datetime(2026, 1, 1)), ValueError, "naive"),  # noqa: DTZ001
    (lambda c: c.appointments.create(patient={"fullName": "x"}, start_at=TIME), ValueError, "unknown key 'fullName'"),
    (
        lambda c: c.appointments.create(patient=5, start_at=TIME),
        TypeError,
        "patient must be a string or a dict with the keys of PatientInput, not an int",
    ),
    (lambda c: c.events.create([]), ValueError, "1 to 100 items"),
    (
        lambda c: c.events.create("x"),
        TypeError,
        "events must be a dict with the keys of EventInput or a list, not a str",
    ),
    (lambda c: c.events.create([{"id": "1", "typ": "x"}]), ValueError, r"events\[0\] has an unknown key 'typ'"),
    (lambda c: c.webhook_endpoints.create(url="https://x", enabled_events="*"), TypeError, "must be a list"),
    (lambda c: c.patients.create(phone="1", idempotency_key=""), ValueError, "idempotency_key"),
    (lambda c: c.patients.create(phone=Decimal(1)), TypeError, "phone must be a string, not a Decimal"),
    (lambda c: c.patients.create(phone=None), TypeError, "phone must be a string, not None"),
    (lambda c: c.patients.create(phone=NOT_GIVEN), TypeError, "phone must be a string, not a NotGiven"),
    (lambda c: c.patients.create(phone="1", date_of_birth=5), TypeError, "date_of_birth must be a date or a string"),
    (lambda c: c.patients.list(limit="10"), TypeError, "limit must be a whole number, not a str"),
    (lambda c: c.patients.list(limit=True), TypeError, "limit must be a whole number, not a bool"),
    (lambda c: c.patients.list(starting_after="pat_" + "x" * 252), ValueError, "starting_after must be an id of at"),
    (lambda c: c.doctors.list(active="yes"), TypeError, "active must be True or False, not a str"),
    (lambda c: c.appointments.list(start_at_gte=date(2026, 1, 1)), TypeError, "start_at_gte must be an aware datetime"),
    (lambda c: c.appointments.create(patient="pat_1", start_at=None), TypeError, "start_at must be .* not None"),
    (lambda c: c.appointments.create(patient={"dni": UUID}, start_at=TIME), TypeError, r"patient\.dni must .* a UUID"),
    (lambda c: c.intake_requests.create(contacts=[{}, {"phone": 5}]), TypeError, r"contacts\[1\]\.phone must be a"),
    (lambda c: c.intake_requests.create(contacts=[None]), TypeError, r"contacts\[0\] must be a dict .* not None"),
    (lambda c: c.intake_requests.create(hospitalized=1), TypeError, "hospitalized must be True or False, not an int"),
    (lambda c: c.webhook_endpoints.update("we_1", enabled_events=[5]), TypeError, r"enabled_events\[0\] must be"),
    (lambda c: c.events.create(itertools.repeat({"id": "1"})), ValueError, "1 to 100 items, not 101 or more"),
    (lambda c: c.events.create([{**EVENT, "id": None}]), TypeError, r"events\[0\]\.id must be a string, not None"),
    (lambda c: c.events.create([EVENT, {**EVENT, "data": None}]), TypeError, r"events\[1\]\.data must be a dict, not"),
    (lambda c: c.events.create({**EVENT, "source": {"system": 5}}), TypeError, r"events\.source\.system must be a str"),
    (lambda c: c.patients.retrieve(4711), ValueError, "begins with 'pat_', not an int"),
    (lambda c: c.patients.retrieve("pat_" + "x" * 252), ValueError, "at most 255 characters"),
    *((make, ValueError, text) for make, text in UNSENDABLE),
]


@pytest.mark.parametrize(("make", "kind", "text"), REJECTED)
def test_invalid_arguments_raise_before_anything_is_sent(
    server: ScriptedServer, make: Callable[[Any], Any], kind: type[Exception], text: str
) -> None:
    with FollowUp(api_key="k", base_url=server.url) as client, pytest.raises(kind, match=text) as caught:
        make(client)
    error: BaseException = caught.value
    assert type(error) is kind
    assert error.__cause__ is None
    assert error.__context__ is None or kind is TypeError
    assert "Ana" not in str(error) + repr(error.args) + repr(vars(error))
    assert server.received == []


def test_so_do_those_of_the_asynchronous_client(server: ScriptedServer) -> None:
    async def use() -> None:
        async with AsyncFollowUp(api_key="k", base_url=server.url) as client:
            for make, kind, text in REJECTED[:10]:
                with pytest.raises(kind, match=text):
                    await make(client)

    asyncio.run(use())
    assert server.received == []
