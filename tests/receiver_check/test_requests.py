"""The requests of the cases are those that the service sends, or differ from them as the case says."""

import hashlib
import hmac
import json
import re
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from receiver_check.conftest import SYNCHRONOUS
from receiver_check.receivers import SECRET, Receiver, served

from followup_mockserver.lab.receiver_check import check_receiver

Request = tuple[bytes, dict[str, str]]


class Records(Receiver):
    """Keeps every request, by the case that it belongs to."""

    case = ""

    def __init__(self, file: Path) -> None:
        super().__init__(file)
        self.by_case: dict[str, list[Request]] = {}
        self.ages: dict[str, float] = {}
        self.together = threading.Barrier(50)

    def receive(self, body: bytes, headers: Any) -> int:
        self.ages[self.case] = time.time() - int(headers["x-service-timestamp"])
        self.by_case.setdefault(self.case, []).append((body, dict(headers)))
        if self.case == "fifty_at_once":
            self.together.wait(8)
        return super().receive(body, headers)


@pytest.fixture(scope="module")
def receiver(tmp_path_factory: pytest.TempPathFactory) -> Records:
    receiver = Records(tmp_path_factory.mktemp("clinic") / "clinic.db")

    def on_step(step: str) -> None:
        receiver.case = step.removeprefix("Playing ")

    with served(receiver) as url:
        check_receiver(f"{url}/webhooks", SECRET, times=SYNCHRONOUS, on_step=on_step)
    return receiver


@pytest.fixture
def recorded(receiver: Records) -> dict[str, list[Request]]:
    return receiver.by_case


def signature(request: Request, *, secret: str = SECRET) -> str:
    body, headers = request
    signed = headers["x-service-timestamp"].encode() + b"." + body
    return "sha256=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def test_a_genuine_request_has_the_headers_of_the_specification(recorded: dict[str, list[Request]]) -> None:
    (request,) = recorded["genuine"]
    body, headers = request
    assert headers["x-service-signature"] == signature(request)
    assert headers["x-service-event-type"] == "appointment.created"
    assert headers["x-service-delivery-attempt"] == "1"
    assert headers["user-agent"] == "Service-Webhooks/1.0"
    assert headers["content-type"] == "application/json"
    assert "accept-encoding" not in headers or headers["accept-encoding"] == "identity"
    assert body.isascii()


def test_a_genuine_body_is_about_an_invented_patient(recorded: dict[str, list[Request]]) -> None:
    event = json.loads(recorded["genuine"][0][0])
    assert re.fullmatch("whd_[0-9A-Za-z]{24}", event["id"])
    assert (event["type"], event["livemode"]) == ("appointment.created", False)
    assert event["data"]["patient"]["phone"] == "+12025550143"  # a number for fiction


def test_each_event_has_an_id_of_its_own(recorded: dict[str, list[Request]]) -> None:
    ids = {case: {json.loads(body)["id"] for body, _ in requests} for case, requests in recorded.items()}
    assert {case: len(each) for case, each in ids.items() if len(each) > 1} == {"out_of_order": 2}
    assert len(set.union(*ids.values())) == 16
    assert len(recorded) == 15


@pytest.mark.parametrize(
    ("case", "seconds", "is_signed"),
    [
        ("wrong_secret", 0, False),
        ("changed_body", 0, False),
        ("old_timestamp", 360, True),
        ("future_timestamp", -360, True),
    ],
)
def test_a_forged_request_is_as_its_case_says(receiver: Records, case: str, seconds: int, is_signed: bool) -> None:
    (request,) = receiver.by_case[case]
    assert seconds <= receiver.ages[case] < seconds + 20
    assert re.fullmatch("sha256=[0-9a-f]{64}", request[1]["x-service-signature"])
    assert (request[1]["x-service-signature"] == signature(request)) is is_signed
    patient = json.loads(request[0])["data"]["patient"]
    assert patient["fullName"] == "Ana Muestra"
    assert patient["phone"] == ("+12025550199" if case == "changed_body" else "+12025550143")


def test_a_repetition_is_the_next_attempt(recorded: dict[str, list[Request]]) -> None:
    first, second = recorded["repeated"]
    assert first[0] == second[0]
    assert [each[1]["x-service-delivery-attempt"] for each in (first, second)] == ["1", "2"]


def test_fifty_equal_requests_are_in_progress_at_the_same_time(receiver: Records) -> None:
    copies = receiver.by_case["fifty_at_once"]
    assert len(copies) == 50
    assert all(each == copies[0] for each in copies)
    assert not receiver.together.broken


def test_the_newer_event_about_one_object_comes_first(recorded: dict[str, list[Request]]) -> None:
    newer, older = (json.loads(body) for body, _ in recorded["out_of_order"])
    assert newer["ref"] == older["ref"]
    assert newer["occurredAt"] > older["occurredAt"]
    assert (newer["type"], older["type"]) == ("appointment.rescheduled", "appointment.created")
    assert newer["data"]["appointment"]["startAt"] > older["data"]["appointment"]["startAt"]


def test_unknown_fields_are_at_the_top_and_within_data(recorded: dict[str, list[Request]]) -> None:
    known, more = (json.loads(recorded[case][0][0]) for case in ("genuine", "unknown_fields"))
    assert more.keys() - known.keys() == {"addedLater"}
    assert more["data"].keys() - known["data"].keys() == {"addedLater"}
    assert more["data"]["appointment"].keys() - known["data"]["appointment"].keys() == {"addedLater"}


def test_a_large_body_has_256_kib_and_no_other_fields(recorded: dict[str, list[Request]]) -> None:
    large, known = recorded["large_body"][0][0], json.loads(recorded["genuine"][0][0])
    assert len(large) == 262_144
    assert json.loads(large).keys() == known.keys()
    assert json.loads(large)["data"]["appointment"].keys() == known["data"]["appointment"].keys()


def test_re_serialized_json_never_matches_the_non_ascii_body(recorded: dict[str, list[Request]]) -> None:
    body = recorded["non_ascii"][0][0]
    event = json.loads(body)
    assert not event["data"]["patient"]["fullName"].isascii()
    assert max(map(ord, event["data"]["patient"]["fullName"])) > 0xFFFF  # four bytes in UTF-8
    for ascii_only in (False, True):
        for separators in ((",", ":"), (", ", ": ")):
            assert json.dumps(event, ensure_ascii=ascii_only, separators=separators).encode() != body


def test_no_request_contains_the_secret(recorded: dict[str, list[Request]]) -> None:
    for body, headers in (each for requests in recorded.values() for each in requests):
        assert SECRET not in body.decode() + str(headers)
