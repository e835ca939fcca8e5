"""The options of a mock, the settings of an organization with its API keys, and the file that has options.

The options are those of ``followup-mock serve``, ``MockServer`` and ``MockService``. A settings file is TOML, with
options in the table ``settings``; ``followup-mock calibrate`` writes it (specification, sections 2 and 5). Which option
follows which open point of the specification is in ``docs/open-points.md``.
"""

import functools
import os
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, get_args

import attrs

from followup import _for_mockserver as sdk
from followup_mockserver.world.schema import errors as checks
from followup_mockserver.world.schema.errors import Check, InvalidArgument, boolean, field, number, optional
from followup_mockserver.world.schema.formats import is_webhook_target
from followup_mockserver.world.schema.shapes import shape_of_parameters

_WRITABLE = ("patients", "appointments", "visits", "intake_requests", "treatments", "events", "webhooks")
ALL_SCOPES = ("doctors:read", *(f"{resource}:{access}" for resource in _WRITABLE for access in ("read", "write")))
ALL_SERVICE_LINES: tuple[sdk.ServiceLine, ...] = get_args(sdk.ServiceLine)

NOT_YET_SENT: tuple[sdk.OutboundEventType, ...] = ("order.issued", "conversation.handoff", "patient.silent")
"""Outbound event types that the service does not send until they are activated (specification, section 6.2)."""

KEY_PREFIX_LENGTH = 8
"""Characters of a key that ``account.retrieve`` shows. They distinguish production keys from test keys."""


MAX_MESSAGE_HOURS = 180 * 24
"""Maximum number of hours between an appointment or a visit and a message about it."""

Language = Literal["es", "en", "pt"]
Mobiles = Literal["keep", "assume"]
Ref = Literal["described", "trigger"]

_hours = number(0, MAX_MESSAGE_HOURS, unit="hours")


def is_time_zone(name: str) -> bool:
    """Return whether this is the IANA name of a time zone."""
    if name == _DEFAULT_TIME_ZONE:
        return True  # without the import, which every start would wait for

    try:
        sdk.zone_of(name)
    except (KeyError, ValueError, OSError):
        return False
    return True


def _is_country(code: str) -> bool:
    if code == _DEFAULT_COUNTRY:
        return True  # without the import

    import phonenumbers

    return code in phonenumbers.SUPPORTED_REGIONS


_DEFAULT_COUNTRY = "AR"
_DEFAULT_TIME_ZONE = "America/Argentina/Buenos_Aires"


def is_intake_field(name: str) -> bool:
    """Return whether this is a field of the patient, or the path of a field of the request body."""
    schema = _intake_schema()
    for step in name.split("."):
        schema = schema.get("properties", {}).get(step, {})
    return name in _PATIENT_FIELDS or bool(schema)


_PATIENT_FIELDS = ("fullName", "dni", "phone")


@functools.cache
def _intake_schema() -> Mapping[str, Any]:
    return shape_of_parameters(sdk.IntakeRequests.create.parameters).schema


def _setting(default: Any, check: Check) -> Any:
    if isinstance(default, tuple):
        return attrs.field(
            factory=lambda: list(default), converter=checks.as_list, validator=checks.validator(checks.list_of(check))
        )
    return field(check, default)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Settings:
    """The settings of an organization that the options of a mock set for new ones; ``MockOptions`` describes them."""

    time_zone: str = _setting(
        _DEFAULT_TIME_ZONE, checks.matching(is_time_zone, "the IANA name of a time zone, such as Europe/Madrid")
    )
    country: str = _setting(
        _DEFAULT_COUNTRY, checks.matching(_is_country, "the ISO 3166 code of a country, such as AR")
    )
    language: str = _setting("es", checks.one_of(get_args(Language)))
    mobiles: str = _setting("keep", checks.one_of(get_args(Mobiles)))
    ref: str = _setting("described", checks.one_of(get_args(Ref)))
    reminder_hours: list[float] = _setting((24.0, 3.0), _hours)
    post_visit_hours: float = _setting(4.0, _hours)
    intake_required: list[str] = _setting(
        ("fullName", "dni", "phone", "coverage.insurer", "address", "requestedService"),
        checks.matching(is_intake_field, "a field of an intake request, such as dni or coverage.insurer"),
    )


SHARED_SETTINGS = tuple(attrs.fields_dict(Settings))


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Organization(Settings):
    """An organization and its settings, validated.

    Attributes:
        id: organization id.
        name: name of the organization.
        type: kind of institution, such as ``clinic``.
        service_lines: ``follow_up``, ``network``, or both (specification, section 1).
        livemode: whether this is a production organization instead of a test one.
        intake_messages: whether the service asks patients for the data that an intake request is missing.
        activated_events: outbound event types of ``NOT_YET_SENT`` that the service sends nevertheless.

    Raises:
        ValueError: an invalid setting; the message names it.
    """

    id: str
    name: str = _setting("Clínica de prueba", checks.text)
    type: str = "clinic"
    service_lines: list[sdk.ServiceLine] = _setting(ALL_SERVICE_LINES, checks.one_of(ALL_SERVICE_LINES))
    livemode: bool = _setting(False, boolean)
    intake_messages: bool = _setting(True, boolean)
    activated_events: list[sdk.OutboundEventType] = _setting((), checks.one_of(NOT_YET_SENT))


_key_value = checks.matching(
    lambda value: re.fullmatch("[!-~]{1,255}", value) is not None, "1 to 255 printable ASCII characters without spaces"
)


@attrs.define(kw_only=True, eq=False, repr=False)
class KeyRecord(sdk.Value):
    """An API key of an organization. ``repr`` does not show its value.

    Attributes:
        name: name of the key.
        value: the key itself, for ``Authorization: Bearer`` and the ``api_key`` of a client.
        prefix: the first characters of the value.
        scopes: its permissions, such as ``patients:read`` (specification, section 5).
        revoked: whether requests with the key are rejected.
        expires_at: when the key expires, on the mock's clock; None: never.
    """

    name: str
    value: str = attrs.field(repr=False, validator=checks.validator(_key_value))
    prefix: str = attrs.field(
        init=False, default=attrs.Factory(lambda key: key.value[:KEY_PREFIX_LENGTH], takes_self=True)
    )
    scopes: list[str]
    revoked: bool = False
    expires_at: datetime | None = None


if TYPE_CHECKING:
    import httpx

    from followup import AppInfo, NotGiven

MAX_IDEMPOTENCY_HOURS = 10 * 365 * 24
"""The largest ``idempotency_hours``: ten years."""


webhook_target: Check = checks.matching(
    is_webhook_target, "an https URL, or an http URL of a loopback address such as http://127.0.0.1:8000"
)
"""Checks a URL that the mock may send webhooks to, whatever its options are."""


# Beside the fields of ``Options``: two classes can have the same typed keyword arguments by PEP 692 alone.
class MockOptions(TypedDict, total=False):
    """The keyword arguments of ``MockService`` and ``MockServer``; each is optional.

    Keys:
        rate_limit: requests per minute and key; 0 for no limit (specification, section 8). Default: 600.
        start_time: time at which the clock is frozen, such as 2026-09-28T12:00:00Z; if omitted, the clock runs with
            real time.
        allow_http_webhooks: also accept webhook URLs that are http to a loopback address. Default: False.
        forward_to: URL to send every webhook to, instead of the endpoint's own URL.
        seed: number that makes ids, secrets and faults with a probability the same in every run.
        country: ISO 3166 code of the country that phone numbers without a country code belong to. Default: AR.
        idempotency_hours: hours, on the mock's clock, for which an idempotency key is remembered. Default: 24.
        refuse_unknown_fields: reject unknown fields and query parameters with a 400. Default: True.
        reminder_hours: hours before an appointment at which reminders are sent; an empty list for none. Default: 24, 3.
        post_visit_hours: hours after a visit at which the follow-up message is sent. Default: 4.
        intake_required: data that an intake request needs to become ready, such as dni or coverage.insurer, in the
            order in which missing data is listed. Default: fullName, dni, phone, coverage.insurer, address,
            requestedService.
        language: language of the messages to patients: es, en or pt. Default: es.
        time_zone: IANA name of the time zone in which messages to patients show times. Default:
            America/Argentina/Buenos_Aires.
        mobiles: keep Argentine numbers that lack the 9 of a mobile number as they are, or assume that a number that has
            the form of a landline is the mobile number: keep or assume. Default: keep.
        ref: what the ref of a webhook names: the object that is described in it, or the inbound event that was the
            trigger, where there was one: described or trigger. Default: described.
        settings: settings file, in TOML, with other options in its table ``settings``; options that are passed take
            precedence. ``followup-mock calibrate`` writes such a file.
    """

    rate_limit: int
    start_time: datetime | str | None
    allow_http_webhooks: bool
    forward_to: str | None
    seed: int | None
    country: str
    idempotency_hours: float
    refuse_unknown_fields: bool
    reminder_hours: Sequence[float]
    post_visit_hours: float
    intake_required: Sequence[str]
    language: str
    time_zone: str
    mobiles: str
    ref: str
    settings: str | os.PathLike[str] | None


class ClientOptions(TypedDict, total=False):
    """The keyword arguments of ``FollowUp`` and ``AsyncFollowUp``, which describe them; each is optional."""

    api_key: str | None
    base_url: str | None
    service_version: str
    timeout: "float | httpx.Timeout | NotGiven"
    max_retries: int
    deadline: float | None
    requests_per_minute: int | None
    http_client: "httpx.Client | httpx.AsyncClient | None"
    app_info: "AppInfo | None"


def meanings() -> dict[str, str]:
    """Return the meaning of each option from the docstring of ``MockOptions``, without the default."""
    return {name: text.partition(" Default: ")[0] for name, text in sdk.descriptions_in(MockOptions, "Keys").items()}


def _start(value: datetime | str | None) -> datetime | None:
    return None if value is None else checks.instant("start_time", value)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Options(Settings):
    """The options of a mock, validated, those of a settings file included; ``MockOptions`` describes them.

    Raises:
        ValueError: an invalid option; the message names it.
    """

    rate_limit: int = field(checks.integer(0), sdk.REQUESTS_PER_MINUTE)
    start_time: datetime | None = attrs.field(default=None, converter=_start)
    allow_http_webhooks: bool = field(boolean, False)
    forward_to: str | None = field(optional(webhook_target), None)
    seed: int | None = field(optional(checks.integer()), None)
    idempotency_hours: float = field(number(0, MAX_IDEMPOTENCY_HOURS, unit="hours", above=True), 24.0)
    refuse_unknown_fields: bool = field(boolean, True)

    def organization(self, id: str, **settings: Any) -> Organization:
        """Return a new organization. ``settings`` take precedence over those of these options."""
        defaults = {name: getattr(self, name) for name in SHARED_SETTINGS}
        return Organization(id=id, **defaults | settings)


SETTINGS = "settings"
ASKED = "asked"
"""The two tables of a settings file: the options, and, by open point, what ``calibrate`` found."""


class SettingsFileError(ValueError):
    """An invalid settings file. The message names the file, the key in it, and a valid value."""


def options_of(passed: Mapping[str, Any]) -> Options:
    """Return the options of a mock: those that are passed, and for the others those in the settings file, if any.

    Args:
        passed: the keyword arguments of a mock, as ``MockOptions`` describes them.

    Raises:
        OSError: the settings file cannot be read.
        SettingsFileError: the settings file is invalid.
        TypeError: an unknown option.
        InvalidArgument: an invalid option.
    """
    explicit = dict(passed)
    path = explicit.pop("settings", None)
    return Options(**(explicit if path is None else read(path) | explicit))


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the options in a settings file, validated, by their names in ``MockOptions``.

    Raises:
        OSError: the file cannot be read.
        SettingsFileError: the file is invalid.
        InvalidArgument: the path is not one.
    """
    import tomllib  # imported late, because most mocks have no settings file

    if not isinstance(path, (str, os.PathLike)):
        raise InvalidArgument("settings", "the path of a settings file")
    content = Path(path).read_bytes()
    try:
        # The Notepad of Windows writes a byte order mark, which TOML does not allow.
        document = tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise SettingsFileError(f"{path}: this must be UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        raise SettingsFileError(f"{path}: this must be TOML: {error}") from None
    for name in document:
        if name not in (SETTINGS, ASKED):
            raise SettingsFileError(f"{path}: {name} is unknown; the tables are [{SETTINGS}] and [{ASKED}]")
        if not isinstance(document[name], dict):
            raise SettingsFileError(f"{path}: {name} must be a table")
    settings: dict[str, Any] = document.get(SETTINGS, {})
    for name in settings:
        if name not in attrs.fields_dict(Options):
            known = ", ".join(sorted(attrs.fields_dict(Options)))
            raise SettingsFileError(f"{path}: {SETTINGS}.{name} is unknown; the settings are {known}")
    # Although options that are passed may replace some: only here can an error name the file.
    try:
        Options(**settings)
    except InvalidArgument as error:
        raise SettingsFileError(f"{path}: {SETTINGS}.{error.argument} must be {error.expected}") from None
    return settings
