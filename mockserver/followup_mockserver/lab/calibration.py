"""``followup-mock calibrate``: asks a test environment of the real service what the specification leaves open.

It is a client program: it uses the API as any client does, and knows nothing of the mock but the names of its options.
There is one function for each open point that is asked about. ``calibration_run`` has what they share, and the list of
everything that was written.
"""

import functools
import importlib.resources
import json
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import attrs
import httpx
import phonenumbers

from followup._for_mockserver import package_text
from followup_mockserver.lab.calibration_run import NAME, NotAsked, Run, body_of, summary_of, word
from followup_mockserver.world.settings import ASKED, SETTINGS, Options, is_intake_field, is_time_zone

UNKNOWN = "followupCalibrate"
"""A field, a query parameter and the end of an id that nothing has."""


@attrs.frozen(kw_only=True)
class Point:
    """An open point, and how to ask about it.

    Attributes:
        id: its name in ``docs/open-points.md`` and in the table ``asked`` of a settings file.
        mock: what the question finds at a mock with the default options.
        scopes: the permissions that the API key needs.
        ask: asks the question. It returns what it found, and raises ``NotAsked`` if it found nothing.
    """

    id: str
    mock: str
    scopes: Sequence[str]
    ask: Callable[[Run], str]

    @property
    def needs_line(self) -> bool:
        """Whether the organization needs the service line ``follow_up`` (specification, section 5)."""
        return any(each.endswith(":write") and not each.startswith("webhooks:") for each in self.scopes)


QUESTIONS = tomllib.loads(package_text(__name__, "calibration_questions.toml"))


def _verdict(response: httpx.Response, accepted: str) -> str:
    """Return whether a request was accepted; of a rejection, the status, type, code, and the field that it names."""
    return accepted if response.is_success else summary_of(response)


# --- requests ----------------------------------------------------------------------------------------------------


def unknown_fields(run: Run) -> str:
    """Are unknown fields and query parameters rejected?"""
    unknown = {"phone": run.patient["phone"], UNKNOWN: "x"}
    body = run.ask("POST", "/v1/patients", json=unknown)
    query = run.ask("GET", "/v1/patients", params=unknown)
    run.settings["refuse_unknown_fields"] = not body.is_success
    return f"in a body: {_verdict(body, 'ignored')}; in a query: {_verdict(query, 'ignored')}"


def messages(run: Run) -> str:
    """In which time zone do messages show times? The one of the account."""
    zone = run.account.time_zone
    if is_time_zone(zone):
        run.settings["time_zone"] = zone
    return (
        f"times in {word(zone)}, the time zone of the account; "
        "the language was not asked, because no operation returns a message"
    )


def idempotency_keys(run: Run) -> str:
    """What happens to a key that is used again?"""
    key, body = {"Idempotency-Key": run.external_id()}, run.booking()
    first = run.ask("POST", "/v1/appointments", json=body, headers=key)
    again = run.ask("POST", "/v1/appointments", json=body, headers=key)
    other = run.ask("POST", "/v1/appointments", json={**body, "type": "control"}, headers=key)
    path = run.ask("POST", "/v1/patients", json={"phone": run.patient["phone"]}, headers=key)
    failed = {"Idempotency-Key": run.external_id()}
    run.ask("POST", "/v1/patients", json={"phone": 5}, headers=failed)
    after = run.ask("POST", "/v1/patients", json={"phone": run.patient["phone"]}, headers=failed)
    replay = f"Idempotent-Replayed: {'true' if again.headers.get('Idempotent-Replayed') == 'true' else 'absent'}"
    same = "the same bytes" if first.content == again.content else "other bytes"
    return (
        f"another body: {_verdict(other, 'accepted')}; another path: {_verdict(path, 'accepted')}; "
        f"after a failure: {_verdict(after, 'free')}; a replay: {same}, {replay}; "
        "how long a key is remembered was not asked, because it takes a day"
    )


# --- patients ----------------------------------------------------------------------------------------------------


def phone_formats(run: Run) -> str:
    """How are phones normalized, and to which country do numbers without a country code belong?"""
    patient = run.patient
    phone = patient["phone"]

    def listed(number: str) -> httpx.Response:
        return run.ask("GET", "/v1/patients", params={"phone": number})

    def finds(number: str) -> bool:
        response = listed(number)
        return response.is_success and [each["id"] for each in body_of(response)["data"]] == [patient["id"]]

    country = country_of(phone, run.account.time_zone, finds, lambda number: listed(number).is_success)
    if country is not None:
        run.settings["country"] = country
    shape = "in E.164" if phone.startswith("+") and phone[1:].isdigit() else "in another format"
    belongs = country or "not found; pass --phone with a number of the country of the organization"
    return f"returned {shape}; impossible: {_verdict(listed('+1 202'), 'accepted')}; without a country code: {belongs}"


# --- appointments, visits and intake requests --------------------------------------------------------------------


def appointment_status(run: Run) -> str:
    """Which status has a new appointment, and one whose start has changed?"""
    booked = run.make("POST", "/v1/appointments", json=run.booking())
    path = f"/v1/appointments/{booked['id']}"
    same = run.make("PATCH", path, json={"startAt": booked["startAt"]})
    moved = run.make("PATCH", path, json={"startAt": run.time(61)})
    return (
        f"new: {word(booked['status'])}; after a new start: {word(moved['status'])}; "
        f"new with the start that it has: {word(same['status'])}"
    )


def intake_required(run: Run) -> str:
    """Which data does an intake request need to become ready?"""
    words: list[str] = []
    # A request needs a name or a contact, so that each lacks the words for what it has itself.
    for body in ({"contacts": [{"name": NAME}]}, {"patient": {"fullName": NAME}}):
        position = 0
        for each in map(str, run.make("POST", "/v1/intake_requests", json=body)["missing"]):
            if each not in words:
                words.insert(position, each)
            position = words.index(each) + 1
    if all(map(is_intake_field, words)):
        run.settings["intake_required"] = words
    return (
        ", ".join(each if is_intake_field(each) else f"{word(each)} (no field of the API)" for each in words)
        or "nothing"
    )


# --- webhooks ----------------------------------------------------------------------------------------------------


def ref(run: Run) -> str:
    """What is the ref of a webhook that an inbound event causes?"""
    # It must be there before the event, or there is no delivery.
    _ = run.endpoint
    body = run.booking()
    data = {"patient": {"phone": run.patient["phone"]}, "appointment": body}
    del body["patient"]
    event = {"id": run.external_id(), "type": "appointment.created", "data": data}
    result = run.make("POST", "/v1/events", json=event)["results"][0]
    if not result.get("result"):
        raise NotAsked(f"the event was {word(result.get('status'))}")
    meanings = {
        result["result"]["id"]: ("described", "the id of the object that is described"),
        result["event"]: ("trigger", "the id of the inbound event"),
    }
    query = {"webhookEndpoint": run.endpoint, "limit": 100}

    def refs_of_deliveries() -> list[tuple[str, str]] | None:
        found = run.make("GET", "/v1/webhook_deliveries", params=query)["data"]
        created = [each["payload"] for each in found if each["eventType"] == "appointment.created"]
        return [meanings[each["ref"]] for each in created if each.get("ref") in meanings] or None

    refs = run.poll(refs_of_deliveries)
    if not refs:
        raise NotAsked("there was no delivery about the event")
    run.settings["ref"], text = refs[0]
    return text


# --- the country of numbers without a country code ---------------------------------------------------------------

_AREAS = (
    "", "1", "2", "4", "5", "6", "7", "8", "9", "02", "16", "20", "21", "22", "38", "51", "70", "86", "98", "222",
    "300", "341", "351", "414",
)  # fmt: skip
_NATIONAL = tuple(f"{area}5550143" for area in _AREAS)
"""Numbers without a country code. Each is valid in some countries only, and together they tell the countries of
America, Portugal, Spain and many others apart."""


def country_of(phone: str, time_zone: str, finds: Callable[[str], bool], accepts: Callable[[str], bool]) -> str | None:
    """Return the ISO 3166 code of the country that numbers without a country code belong to.

    Args:
        phone: the phone of a patient, in E.164.
        time_zone: the time zone of the organization.
        finds: whether the service finds this patient by a number.
        accepts: whether the service accepts a number as a filter, which does not store it.

    Returns:
        The code; None if it was not found.
    """
    if phone.startswith("+"):
        own = phonenumbers.parse(phone)
        if finds(phonenumbers.format_number(own, phonenumbers.PhoneNumberFormat.NATIONAL)):
            return _preferred(phonenumbers.region_codes_for_country_code(own.country_code or 0), time_zone)
    accepted = tuple(accepts(number) for number in _NATIONAL)
    # A filter may accept no number at all without a country code.
    if not any(accepted):
        return None
    return _preferred([each for each in phonenumbers.SUPPORTED_REGIONS if _validity(each) == accepted], time_zone)


@functools.cache
def _validity(region: str) -> tuple[bool, ...]:
    return tuple(phonenumbers.is_valid_number(phonenumbers.parse(number, region)) for number in _NATIONAL)


def _preferred(regions: Collection[str], time_zone: str) -> str | None:
    """Return the country of the time zone if it fits, else the main country of the only calling code that fits."""
    # zoneinfo knows no countries; this table of the time zone database does, and names one for each zone.
    table = importlib.resources.files("tzdata").joinpath("zoneinfo/zone.tab").read_text()
    rows = (line.split("\t") for line in table.splitlines() if not line.startswith("#"))
    local = next((row[0] for row in rows if row[2] == time_zone), None)
    if local in regions:
        return local
    codes = {phonenumbers.country_code_for_region(each) for each in regions}
    return phonenumbers.region_code_for_country_code(codes.pop()) if len(codes) == 1 else None


# --- all of them -------------------------------------------------------------------------------------------------

_ASKED = (unknown_fields, messages, idempotency_keys, phone_formats, appointment_status, intake_required, ref)
POINTS = tuple(Point(id=each.__name__, ask=each, **QUESTIONS["asked"][each.__name__]) for each in _ASKED)
"""The open points that are asked about, in this order; the name of a question is the id of its point."""

NOT_ASKED: Mapping[str, str] = {each: reason for reason, ids in QUESTIONS["not_asked"].items() for each in ids}
"""The open points that are not asked about, by id, each with the reason."""


@attrs.frozen
class Finding:
    """What was found about an open point.

    Attributes:
        id: the point.
        outcome: whether the environment does the same as a mock with the default options.
        text: what was found, or why nothing was.
    """

    id: str
    outcome: Literal["same", "different", "not asked"]
    text: str


def ask_all(run: Run) -> Iterator[Finding]:
    """Ask all questions, and yield the finding about each open point as soon as there is one.

    The caller cleans up, whatever happens.
    """
    for each in POINTS:
        yield find(run, each)
    for point_id, reason in NOT_ASKED.items():
        yield _not_asked(point_id, reason)


def find(run: Run, point: Point) -> Finding:
    """Ask about one point. Whatever goes wrong is part of the finding."""
    if lacking := [scope for scope in point.scopes if scope not in run.account.api_key.scopes]:
        return _not_asked(point.id, f"the API key lacks {', '.join(lacking)}")
    if point.needs_line and "follow_up" not in run.account.service_lines:
        return _not_asked(point.id, "the organization lacks the service line follow_up")
    before = dict(run.settings)
    try:
        text = point.ask(run)
    except NotAsked as reason:
        return _not_asked(point.id, str(reason))
    except Exception as error:  # noqa: BLE001 - a response that no question expects must not end the others
        return _not_asked(point.id, f"a response is not as the specification says ({type(error).__name__})")
    if text == point.mock:
        return Finding(point.id, "same", f"found: {text} (the mock: the same)")
    settings = [
        name for name, value in run.settings.items() if name not in before and value != getattr(Options(), name)
    ]
    hint = f", without {', '.join(settings)} of [settings]" if settings else ""
    return Finding(point.id, "different", f"found: {text} (the mock: {point.mock}{hint})")


def _not_asked(point_id: str, reason: str) -> Finding:
    return Finding(point_id, "not asked", f"not asked: {reason}")


_HEADER = """\
# What a test environment does where the specification of the service is silent, written by followup-mock calibrate.
# Use it with: followup-mock serve --settings FILE, or MockService(settings=FILE).
# docs/open-points.md describes the points of the table [asked], and the options of the table [settings].
"""


def settings_file(settings: Mapping[str, Any], findings: Iterable[Finding]) -> str:
    """Return the text of a settings file."""
    tables = {SETTINGS: dict(sorted(settings.items())), ASKED: {each.id: each.text for each in findings}}
    rows = {each: "".join(f"{key} = {_toml(value)}\n" for key, value in tables[each].items()) for each in tables}
    return _HEADER + "".join(f"\n[{name}]\n{text}" for name, text in rows.items())


def _toml(value: bool | str | list[str]) -> str:
    """Return a value in TOML, whose booleans, strings and arrays are those of JSON, except for one character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
