"""The settings of an organization, and its API keys (specification, sections 2 and 5)."""

import functools
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, get_args

import attrs

from followup._for_mockserver import IntakeRequests, OutboundEventType, ServiceLine, Value, zone_of
from followup_mockserver.world.schema import checks
from followup_mockserver.world.schema.shapes import shape_of_parameters

_WRITABLE = ("patients", "appointments", "visits", "intake_requests", "treatments", "events", "webhooks")
ALL_SCOPES = ("doctors:read", *(f"{resource}:{access}" for resource in _WRITABLE for access in ("read", "write")))
ALL_SERVICE_LINES: tuple[ServiceLine, ...] = get_args(ServiceLine)

NOT_YET_SENT: tuple[OutboundEventType, ...] = ("order.issued", "conversation.handoff", "patient.silent")
"""Outbound event types that the service does not send until they are activated (specification, section 6.2)."""

KEY_PREFIX_LENGTH = 8
"""Characters of a key that ``account.retrieve`` shows. They distinguish production keys from test keys."""


MAX_MESSAGE_HOURS = 180 * 24
"""Maximum number of hours between an appointment or a visit and a message about it."""

Language = Literal["es", "en", "pt"]
Mobiles = Literal["keep", "assume"]
Ref = Literal["described", "trigger"]

_hours = checks.number(0, MAX_MESSAGE_HOURS, unit="hours")


def is_time_zone(name: str) -> bool:
    """Return whether this is the IANA name of a time zone."""
    if name == _DEFAULT_TIME_ZONE:
        return True  # without the import, which every start would wait for

    try:
        zone_of(name)
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
    return shape_of_parameters(IntakeRequests.create.parameters).schema


def _setting(default: Any, check: checks.Check) -> Any:
    if isinstance(default, tuple):
        return attrs.field(
            factory=lambda: list(default), converter=checks.as_list, validator=checks.validator(checks.list_of(check))
        )
    return checks.field(check, default)


@attrs.define(kw_only=True, eq=False, repr=False)
class Organization:
    """An organization and its settings. Each setting is validated when it is set.

    Attributes:
        id: organization id.
        name: name of the organization.
        type: kind of institution, such as ``clinic``.
        time_zone: IANA name of the time zone in which messages to patients show times.
        country: ISO 3166 code of the country of phone numbers without a country code.
        language: language of the messages to patients: ``es``, ``en`` or ``pt``.
        service_lines: ``follow_up``, ``network``, or both (specification, section 1).
        livemode: whether this is a production organization instead of a test one.
        reminder_hours: hours before an appointment at which reminders are sent.
        post_visit_hours: hours after a visit at which the follow-up message is sent.
        intake_messages: whether the service asks patients for the data that an intake request is missing.
        mobiles: ``keep``, or ``assume`` that an Argentine number that has the form of a landline is the mobile number.
        ref: what the ``ref`` of a webhook names: the object that is ``described``, or the inbound event that was the
            ``trigger``, where there was one.
        activated_events: outbound event types of ``NOT_YET_SENT`` that the service sends nevertheless.
        intake_required: data that an intake request needs to become ready, in the order in which ``missing`` lists it.

    Raises:
        ValueError: an invalid setting; the message names it.
    """

    id: str
    name: str = _setting("Clínica de prueba", checks.text)
    type: str = "clinic"
    time_zone: str = _setting(
        _DEFAULT_TIME_ZONE, checks.matching(is_time_zone, "the IANA name of a time zone, such as Europe/Madrid")
    )
    country: str = _setting(
        _DEFAULT_COUNTRY, checks.matching(_is_country, "the ISO 3166 code of a country, such as AR")
    )
    language: str = _setting("es", checks.one_of(get_args(Language)))
    mobiles: str = _setting("keep", checks.one_of(get_args(Mobiles)))
    ref: str = _setting("described", checks.one_of(get_args(Ref)))
    service_lines: list[ServiceLine] = _setting(ALL_SERVICE_LINES, checks.one_of(ALL_SERVICE_LINES))
    livemode: bool = _setting(False, checks.boolean)
    reminder_hours: list[float] = _setting((24.0, 3.0), _hours)
    post_visit_hours: float = _setting(4.0, _hours)
    intake_messages: bool = _setting(True, checks.boolean)
    activated_events: list[OutboundEventType] = _setting((), checks.one_of(NOT_YET_SENT))
    intake_required: list[str] = _setting(
        ("fullName", "dni", "phone", "coverage.insurer", "address", "requestedService"),
        checks.matching(is_intake_field, "a field of an intake request, such as dni or coverage.insurer"),
    )


_key_value = checks.matching(
    lambda value: re.fullmatch("[!-~]{1,255}", value) is not None, "1 to 255 printable ASCII characters without spaces"
)


@attrs.define(kw_only=True, eq=False, repr=False)
class KeyRecord(Value):
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
