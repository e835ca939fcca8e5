"""What the control API does, as plain Python: the clock, faults, patients and staff in the hands of a test.

These are also the methods of ``MockService`` and ``MockServer``, where they act on the default organization.
"""

import itertools
import json
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any, TypedDict, TypeVar, get_args

import attrs

from followup import (
    Account,
    ContactInput,
    CoverageInput,
    DeletedObject,
    Doctor,
    IntakeRequest,
    Patient,
    PatientInput,
    SenderInput,
    WebhookDelivery,
    WebhookEndpoint,
)
from followup._annotations import OutboundEventType
from followup._codec.timestamps import format_timestamp
from followup._declarations import NOT_GIVEN, NotGiven
from followup.resources.account import ServiceLine
from followup.resources.patients import PatientStage
from followup.resources.webhook_deliveries import WebhookDeliveryStatus
from followup.resources.webhook_endpoints import EnabledEvent
from followup_mockserver.contract.operations import OPERATIONS
from followup_mockserver.engine import Engine
from followup_mockserver.options import webhook_target
from followup_mockserver.rules import account, doctors, intake_requests, patients, webhook_endpoints
from followup_mockserver.schema.checks import (
    END_OF_TIME,
    Check,
    boolean,
    choice,
    each,
    instant,
    optional,
    text,
    that,
    whole,
)
from followup_mockserver.schema.errors import InvalidArgument, ServiceError, missing
from followup_mockserver.settings import ALL_SCOPES, KeyRecord
from followup_mockserver.state.clock import RealTime
from followup_mockserver.state.copies import copied
from followup_mockserver.state.jobs import SendReminder
from followup_mockserver.state.journal import JournalEntry
from followup_mockserver.state.records import Attempt, Message
from followup_mockserver.state.registry import Registry
from followup_mockserver.state.request_faults import EVERY_OPERATION, Fault, FaultKind, FaultMoment
from followup_mockserver.state.runs import Advanced
from followup_mockserver.state.tenant import Tenant
from followup_mockserver.state.webhook_faults import Disturbance, DisturbanceKind
from followup_mockserver.webhooks import deliveries, examples
from followup_mockserver.webhooks.mounts import Mounts, Receiver

T = TypeVar("T")

_NEAR_ENOUGH = f"a number, and end before the year {END_OF_TIME.year}"


class KeyInput(TypedDict, total=False):
    """A key for a new organization: its name, and its scopes (default: all)."""

    name: str
    scopes: list[str]


@attrs.frozen(kw_only=True)
class ClockState:
    """The time it is, and whether the clock is frozen."""

    now: datetime
    frozen: bool


@attrs.frozen(kw_only=True)
class PendingJob:
    """A job that is due later."""

    at: datetime
    kind: str
    about: str


@attrs.frozen(kw_only=True)
class PendingReminder:
    """A reminder that is due later; it is not sent to a patient who has opted out by then."""

    appointment: str
    patient: str
    send_at: datetime


@attrs.frozen(kw_only=True)
class NewOrganization:
    """An organization, and those of its keys that were made now, with their values."""

    organization: Account
    keys: list[KeyRecord]


@attrs.frozen(kw_only=True)
class Changes:
    """Whether something happened: a version that is another one after every change."""

    version: int


class Control:
    """The control of one organization.

    Args:
        key: a key of the organization; None: the default organization.
    """

    def __init__(self, registry: Registry, engine: Engine, mounts: Mounts, key: str | None = None) -> None:
        self._registry = registry
        self._engine = engine
        self._mounts = mounts
        self._key = key

    @property
    def tenant(self) -> Tenant:
        """The state of the organization. A reset replaces it."""
        tenant = self._registry.default if self._key is None else self._registry.by_key(self._key)
        if tenant is None:
            raise ServiceError(401, "authentication_error", "api_key_invalid", "There is no such API key.")
        return tenant

    def organization(self, key: str) -> "Control":
        """The control of the organization that this key belongs to."""
        return Control(self._registry, self._engine, self._mounts, key)

    # --- the clock -----------------------------------------------------------------------------------------------

    @property
    def clock(self) -> ClockState:
        """The time it is."""
        tenant = self.tenant
        with tenant.lock:
            return ClockState(now=tenant.now(), frozen=tenant.clock.frozen)

    def advance(
        self,
        *,
        seconds: float = 0,
        minutes: float = 0,
        hours: float = 0,
        days: float = 0,
        to: datetime | str | None = None,
    ) -> Advanced:
        """Advance the clock, and run everything that becomes due, in time order, each at its own due time.

        Returns when all of it, and all that it caused, is done. With no argument the clock is not moved: what is due
        now is done.

        Args:
            seconds: with minutes, hours and days: how far.
            to: to which instant instead; an aware datetime or an ISO 8601 string.

        Raises:
            ValueError: a negative distance, a time that has passed or is none, or both a distance and a time.
        """
        tenant = self.tenant
        distance = _distance(seconds=seconds, minutes=minutes, hours=hours, days=days)
        if distance and to is not None:
            raise InvalidArgument("to", "omitted when a distance is passed")
        with tenant.lock:
            target = _later(tenant.clock.now(), distance) if to is None else _ahead(tenant.now(), to)
        return self._engine.advance(tenant, target)

    def step(self) -> Advanced:
        """Run exactly the next job, moving the clock to when it is due."""
        return self._engine.step(self.tenant)

    @property
    def jobs(self) -> list[PendingJob]:
        """The jobs that are due later, in order."""
        return self.next_jobs()

    def next_jobs(self, limit: int | NotGiven = NOT_GIVEN) -> list[PendingJob]:
        """The jobs that are due next, in order; so many at most, or all."""
        if not isinstance(limit, NotGiven):
            whole(1)("limit", limit)
        tenant = self.tenant
        with tenant.lock:
            timers = tenant.scheduler.earliest(limit) if isinstance(limit, int) else tenant.scheduler.pending()
            return [PendingJob(at=timer.at, kind=timer.job.kind, about=timer.job.about) for timer in timers]

    # --- what happened -------------------------------------------------------------------------------------------

    def changes(self, since: int = 0, *, wait: float = 0) -> Changes:
        """The version of what there is now.

        Args:
            since: a version.
            wait: seconds to wait, at most, until there is another one.
        """

        def look(tenant: Tenant) -> tuple[bool, Changes]:
            return tenant.version != since, Changes(version=tenant.version)

        return self._when(look, wait, copied)

    @property
    def reminders(self) -> list[PendingReminder]:
        """The pending reminders, in order; one of a patient who has opted out by then is not sent."""
        return self.reminders_of()

    def reminders_of(self, appointment: str | None = None) -> list[PendingReminder]:
        """The pending reminders of one appointment or of all, in order."""
        tenant = self.tenant
        with tenant.lock:
            pending = []
            for timer in tenant.scheduler.pending(about=appointment, kind=SendReminder.kind):
                of = tenant.appointments.get(timer.job.about)
                assert of is not None  # appointments are never removed
                pending.append(PendingReminder(appointment=of.id, patient=of.patient, send_at=timer.at))
            return pending

    @property
    def messages(self) -> list[Message]:
        """The messages written to patients so far, oldest first."""
        return self.messages_to()

    def messages_to(self, patient: str | None = None, *, wait: float = 0, seen: int = 0) -> list[Message]:
        """The messages written to one patient or to all, oldest first.

        Args:
            wait: seconds to wait, at most, until there are more than ``seen``.
        """
        return self._when_more(
            lambda tenant: [each for each in tenant.messages if patient in (None, each.patient)], wait, seen
        )

    @property
    def requests(self) -> list[JournalEntry]:
        """The API calls so far, newest first; the last 10,000."""
        return self.requests_of()

    def requests_of(self, operation: str | None = None, *, wait: float = 0, seen: int = 0) -> list[JournalEntry]:
        """The API calls of one operation or of all, newest first.

        Args:
            wait: seconds to wait, at most, until there are more than ``seen``.

        Raises:
            ValueError: there is no such operation.
        """
        optional(_operation)("operation", operation)
        return self._when_more(
            lambda tenant: [each for each in tenant.journal.newest_first() if operation in (None, each.operation)],
            wait,
            seen,
        )

    @property
    def deliveries(self) -> list[WebhookDelivery]:
        """The webhook deliveries, newest first."""
        return self.deliveries_of()

    def deliveries_of(
        self,
        type: OutboundEventType | None = None,
        status: WebhookDeliveryStatus | None = None,
        *,
        wait: float = 0,
        seen: int = 0,
    ) -> list[WebhookDelivery]:
        """The webhook deliveries of one event type, with one status, or all; newest first.

        Args:
            wait: seconds to wait, at most, until there are more than ``seen``.
        """

        def matching(tenant: Tenant) -> list[WebhookDelivery]:
            newest_first = reversed([*tenant.webhook_deliveries])
            return [each for each in newest_first if type in (None, each.event_type) and status in (None, each.status)]

        return self._when_more(matching, wait, seen, copied)

    def attempts_of(self, webhook_endpoint: str | None = None, *, wait: float = 0, seen: int = 0) -> list[Attempt]:
        """Every attempt to deliver to one endpoint or to all, in order of time.

        Args:
            wait: seconds to wait, at most, until there are more than ``seen``.

        Raises:
            ServiceError: there is no such endpoint, or no longer.
        """

        def matching(tenant: Tenant) -> list[Attempt]:
            if webhook_endpoint is not None and webhook_endpoint not in tenant.webhook_endpoints:
                raise missing("webhook endpoint", param="webhookEndpoint")
            made = itertools.chain.from_iterable(tenant.attempts.values())
            chosen = (each for each in made if webhook_endpoint in (None, each.webhook_endpoint))
            return sorted(chosen, key=lambda each: each.at)

        return self._when_more(matching, wait, seen)

    def attempts(self, id: str, /) -> list[Attempt]:
        """Every attempt of a delivery, in order."""
        tenant = self.tenant
        with tenant.lock:
            _existing(tenant.webhook_deliveries.get(id), "webhook delivery")
            return list(tenant.attempts.get(id, ()))

    # --- test controls ------------------------------------------------------------------------------------------

    def mount(self, url: str, app: Receiver) -> None:
        """Have webhooks to this URL, and to those below it, go to an application in this process.

        Args:
            url: an https URL, or an http URL of a loopback address.
            app: a WSGI or ASGI application, or a function that takes an httpx.Request and returns an httpx.Response.

        Raises:
            ValueError: another URL, such as one without a scheme.
        """
        webhook_target("url", url)
        self._mounts.add(url, app)

    def add_doctor(
        self,
        *,
        full_name: str,
        specialty: str | None = None,
        license_number: str | None = None,
        external_id: str | None = None,
        active: bool = True,
    ) -> Doctor:
        """Add a doctor to the roster."""
        return self._do(
            lambda tenant: doctors.add(
                tenant,
                full_name=full_name,
                specialty=specialty,
                license_number=license_number,
                external_id=external_id,
                active=active,
            )
        )

    def update_doctor(
        self,
        id: str,
        /,
        *,
        full_name: str | NotGiven = NOT_GIVEN,
        specialty: str | None | NotGiven = NOT_GIVEN,
        license_number: str | None | NotGiven = NOT_GIVEN,
        external_id: str | None | NotGiven = NOT_GIVEN,
        active: bool | NotGiven = NOT_GIVEN,
    ) -> Doctor:
        """Update a doctor of the roster. Omitted fields stay unchanged."""
        changes = _passed(
            full_name=full_name,
            specialty=specialty,
            license_number=license_number,
            external_id=external_id,
            active=active,
        )
        return self._do(lambda tenant: doctors.update(tenant, _existing(tenant.doctors.get(id), "doctor"), **changes))

    def update_patient(
        self, id: str, /, *, opted_out: bool | NotGiven = NOT_GIVEN, stage: PatientStage | NotGiven = NOT_GIVEN
    ) -> Patient:
        """Change what the service would change by itself: whether the patient wants messages, and the stage."""
        changes = _passed(opted_out=opted_out, stage=stage)
        _checked(changes, opted_out=boolean, stage=choice(get_args(PatientStage)))

        def change(tenant: Tenant) -> Patient:
            patient = _existing(tenant.patients.get(id), "patient")
            return patients.mark(tenant, patient, **changes)

        return self._do(change)

    def answer_intake_request(
        self,
        id: str,
        /,
        *,
        patient: PatientInput | NotGiven = NOT_GIVEN,
        contacts: Iterable[ContactInput] | NotGiven = NOT_GIVEN,
        coverage: CoverageInput | NotGiven = NOT_GIVEN,
        address: str | NotGiven = NOT_GIVEN,
        requested_service: str | NotGiven = NOT_GIVEN,
        summary: str | NotGiven = NOT_GIVEN,
        hospitalized: bool | NotGiven = NOT_GIVEN,
        sender: SenderInput | NotGiven = NOT_GIVEN,
    ) -> IntakeRequest:
        """The patient answers with data, in the shape of the creation body."""
        answers = _passed(
            patient=patient,
            contacts=contacts,
            coverage=coverage,
            address=address,
            requested_service=requested_service,
            summary=summary,
            hospitalized=hospitalized,
            sender=sender,
        )
        return self._do(lambda tenant: intake_requests.answer(tenant, _intake(tenant, id), **answers))

    def load_intake_request(self, id: str, /) -> IntakeRequest:
        """The organization loads an intake request that is ready into its own system."""
        return self._do(lambda tenant: intake_requests.load(tenant, _intake(tenant, id)))

    def discard_intake_request(self, id: str, /, *, reason: str | None = None) -> IntakeRequest:
        """The organization discards an intake request."""
        return self._do(lambda tenant: intake_requests.discard(tenant, _intake(tenant, id), reason=reason))

    # --- organizations and keys ----------------------------------------------------------------------------------

    def create_organization(
        self,
        *,
        name: str = "Organization",
        service_lines: list[ServiceLine] | None = None,
        livemode: bool = False,
        keys: list[KeyInput] | None = None,
    ) -> NewOrganization:
        """A new organization, isolated from the others; like the default one unless the call says otherwise."""
        settings: dict[str, Any] = {"name": name, "livemode": livemode}
        if service_lines is not None:
            settings["service_lines"] = service_lines
        wanted = [(key.get("name", "default"), _scopes(key.get("scopes"))) for key in keys or [KeyInput()]]
        tenant = self._registry.create(settings, wanted)
        records = copied(list(tenant.keys.values()))
        return NewOrganization(organization=account.retrieve(tenant, key=records[0]), keys=records)

    def update_organization(
        self,
        *,
        name: str | NotGiven = NOT_GIVEN,
        service_lines: list[ServiceLine] | NotGiven = NOT_GIVEN,
        time_zone: str | NotGiven = NOT_GIVEN,
        reminder_hours: list[float] | NotGiven = NOT_GIVEN,
        post_visit_hours: float | NotGiven = NOT_GIVEN,
        intake_messages: bool | NotGiven = NOT_GIVEN,
        intake_required: list[str] | NotGiven = NOT_GIVEN,
        country: str | NotGiven = NOT_GIVEN,
        language: str | NotGiven = NOT_GIVEN,
    ) -> Account:
        """Change what the organization configured.

        Omitted settings stay as they are; ``Organization`` says what each means. Booked appointments keep their
        reminders, and open intake requests what they are missing.

        Raises:
            ValueError: an invalid setting; nothing is changed then.
        """
        changes = _passed(
            name=name,
            service_lines=service_lines,
            time_zone=time_zone,
            reminder_hours=reminder_hours,
            post_visit_hours=post_visit_hours,
            intake_messages=intake_messages,
            intake_required=intake_required,
            country=country,
            language=language,
        )

        def change(tenant: Tenant) -> Account:
            tenant.organization = attrs.evolve(tenant.organization, **changes)
            return account.retrieve(tenant, key=next(iter(tenant.keys.values())))

        return self._do(change)

    def add_api_key(self, *, name: str = "key", scopes: list[str] | None = None) -> KeyRecord:
        """Add a key to the organization; with all scopes by default."""
        return copied(self._registry.add_key(self.tenant, _named(name), _scopes(scopes)))

    def organization_with_new_key(self, *, name: str = "key", scopes: list[str] | None = None) -> NewOrganization:
        """As ``add_api_key``, answered in the shape of ``create_organization``, as the control API does over HTTP."""
        key = self.add_api_key(name=name, scopes=scopes)
        tenant = self.tenant
        with tenant.lock:
            return NewOrganization(organization=account.retrieve(tenant, key=key), keys=[key])

    def update_api_key(
        self,
        value: str,
        /,
        *,
        revoked: bool | NotGiven = NOT_GIVEN,
        expires_at: datetime | str | None | NotGiven = NOT_GIVEN,
    ) -> KeyRecord:
        """Revoke a key, have it expire, or take either back (``revoked=False``, ``expires_at=None``)."""
        if isinstance(expires_at, (datetime, str)):
            expires_at = instant("expires_at", expires_at)
        changes = _passed(revoked=revoked, expires_at=expires_at)
        _checked(changes, revoked=boolean)

        def change(tenant: Tenant) -> KeyRecord:
            key = _existing(tenant.keys.get(value), "API key")
            for field, changed in changes.items():
                setattr(key, field, changed)
            return key

        return self._do(change)

    # --- faults --------------------------------------------------------------------------------------------------

    @property
    def faults(self) -> list[Fault]:
        """The faults that wait for their calls."""
        tenant = self.tenant
        with tenant.lock:
            return copied(tenant.faults.all())

    def add_fault(
        self,
        *,
        operation: str,
        kind: FaultKind,
        status: int = 500,
        seconds: float = 0,
        times: int | None = 1,
        when: FaultMoment = "before",
        skip: int = 0,
        probability: float = 1,
        retry_after: float | None = None,
    ) -> Fault:
        """Make the next calls of an operation fail.

        Args:
            operation: its name, such as ``patients.create``; ``*`` for every one.
            kind: ``status``, ``delay``, ``disconnect`` or ``truncate``.
            status: HTTP status, for kind ``status``.
            seconds: for kind ``delay``.
            times: for how many calls; None for all.
            when: ``before`` the work is done, or ``after``.
            skip: how many calls pass first.
            probability: of hitting a call, 0 to 1.
            retry_after: seconds in a ``Retry-After`` header; with status 429, as in the service, 1 by default.

        Raises:
            ValueError: an invalid argument; the message names it, and what it can be.
        """
        _operation_or_all("operation", operation)
        if retry_after is None and status == HTTPStatus.TOO_MANY_REQUESTS:
            retry_after = 1
        fault = Fault(
            operation=operation,
            kind=kind,
            status=status,
            seconds=seconds,
            times=times,
            when=when,
            skip=skip,
            probability=probability,
            retry_after=retry_after,
        )

        def add(tenant: Tenant) -> Fault:
            tenant.faults.add(fault)
            return fault

        return self._do(add)

    def clear_faults(self) -> None:
        """Remove all faults."""
        self._do(lambda tenant: tenant.faults.clear())

    def disturb(
        self,
        *,
        kind: DisturbanceKind,
        type: OutboundEventType | None = None,
        times: int = 1,
        seconds: float = 600,
    ) -> Disturbance:
        """Add a webhook fault: the next deliveries go wrong.

        Args:
            kind: ``duplicate``, ``reorder``, ``late``, ``wrong_signature`` or ``old_signature``.
            type: only webhooks of this type.
            times: how many.
            seconds: how late, or how old.

        Raises:
            ValueError: an invalid argument; the message names it, and what it can be.
        """
        disturbance = Disturbance(kind=kind, type=type, times=times, seconds=seconds)

        def add(tenant: Tenant) -> Disturbance:
            tenant.disturbances.add(disturbance)
            return disturbance

        return self._do(add)

    @property
    def webhook_faults(self) -> list[Disturbance]:
        """The webhook faults that wait for their deliveries."""
        tenant = self.tenant
        with tenant.lock:
            return copied(tenant.disturbances.all())

    def clear_webhook_faults(self) -> None:
        """Remove the webhook faults that wait for their deliveries."""
        self._do(lambda tenant: tenant.disturbances.clear())

    # --- webhooks ------------------------------------------------------------------------------------------------

    def add_webhook_endpoint(self, *, url: str, enabled_events: list[EnabledEvent] | None = None) -> WebhookEndpoint:
        """An endpoint that may be http on this machine, whatever the mock was started with; has its secret.

        Args:
            enabled_events: default: all.
        """
        webhook_target("url", url)
        events: list[str] = [*enabled_events] if enabled_events else [deliveries.EVERY_TYPE]
        each(choice([*examples.EXAMPLES, deliveries.EVERY_TYPE]))("enabled_events", events)
        return self._do(lambda tenant: webhook_endpoints.create(tenant, url=url, enabled_events=events))

    def delete_webhook_endpoint(self, id: str, /) -> DeletedObject:
        """Remove an endpoint, its history and what is pending."""
        return self._do(
            lambda tenant: webhook_endpoints.delete(
                tenant, _existing(tenant.webhook_endpoints.get(id), "webhook endpoint")
            )
        )

    def trigger(self, *, type: OutboundEventType, data: Mapping[str, Any] | None = None) -> list[WebhookDelivery]:
        """Send an outbound webhook of any type to the endpoints that are subscribed to it.

        Args:
            data: of the event, as JSON has it; by default about the newest object that fits, or an example.
        """
        choice(examples.EXAMPLES)("type", type)
        passed = None if data is None else _json_copy(data)

        def send(tenant: Tenant) -> list[WebhookDelivery]:
            sent, ref = (passed, "trigger") if passed is not None else examples.about_newest(tenant, type)
            return deliveries.send_to_subscribers(tenant, type, sent, ref)

        return self._do(send)

    @property
    def trigger_types(self) -> dict[str, Mapping[str, Any]]:
        """The types that can be triggered, with an example of each one's data."""
        return copied(dict(examples.EXAMPLES))

    def resend(self, id: str, /) -> WebhookDelivery:
        """One more attempt of a delivery, now, whatever became of it; returns the delivery after it."""
        tenant = self.tenant
        with tenant.lock:
            delivery = _existing(tenant.webhook_deliveries.get(id), "webhook delivery")
        self._engine.resend(tenant, id)
        with tenant.lock:
            return copied(delivery)

    def reset(self) -> None:
        """Back to the state at start: this organization, or the whole mock for the default one without a key."""
        self._registry.reset(None if self._key is None else self.tenant)

    # --- inside --------------------------------------------------------------------------------------------------

    def _do(self, change: Callable[[Tenant], T]) -> T:
        tenant = self.tenant
        with tenant.lock:
            result = change(tenant)
            tenant.notify()
            return copied(result)

    def _when_more(
        self,
        matching: Callable[[Tenant], list[T]],
        wait: float,
        seen: int,
        handed_out: Callable[[list[T]], list[T]] = list,
    ) -> list[T]:
        def look(tenant: Tenant) -> tuple[bool, list[T]]:
            found = matching(tenant)
            return len(found) > seen, found

        return self._when(look, wait, handed_out)

    def _when(self, look: Callable[[Tenant], tuple[bool, T]], wait: float, handed_out: Callable[[T], T]) -> T:
        """What a look at the tenant finds, once it is what was waited for or the time is up.

        Args:
            handed_out: makes what the caller gets of what was found, while the lock is held.
        """
        ends = RealTime.monotonic() + wait
        while True:
            tenant = self.tenant  # anew each time, for a reset replaces it
            with tenant.lock:
                satisfied, found = look(tenant)
                left = ends - RealTime.monotonic()
                if satisfied or left <= 0 or self._engine.stopped:
                    return handed_out(found)
                if tenant is self.tenant:
                    tenant.changed.wait(left)


def _passed(**arguments: Any) -> dict[str, Any]:
    """The arguments that were not omitted, as copies."""
    return {name: copied(value) for name, value in arguments.items() if value is not NOT_GIVEN}


def _checked(changes: Mapping[str, Any], **checks: Check) -> None:
    for argument, check in checks.items():
        if argument in changes:
            check(argument, changes[argument])


def _json_copy(data: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        text = json.dumps(data, ensure_ascii=False, allow_nan=False)
        text.encode()  # a lone surrogate can be dumped, and not sent
    except (TypeError, ValueError, RecursionError):
        raise InvalidArgument("data", "what JSON can express") from None
    copied: Mapping[str, Any] = json.loads(text)
    return copied


def _distance(**parts: float) -> timedelta:
    distance = timedelta()
    for argument, value in parts.items():
        try:
            part = timedelta(**{argument: value})
            distance += part
        except (OverflowError, ValueError, TypeError):
            raise InvalidArgument(argument, _NEAR_ENOUGH) from None
        if part < timedelta(0):
            raise InvalidArgument(argument, "0 or more: time never goes back")
    return distance


def _later(now: datetime, distance: timedelta) -> datetime:
    if distance > END_OF_TIME - now:
        raise InvalidArgument("seconds", _NEAR_ENOUGH)
    return now + distance


def _ahead(now: datetime, to: datetime | str) -> datetime:
    target = instant("to", to)
    if target < now:
        raise InvalidArgument("to", f"{format_timestamp(now)}, which it is now, or later: time never goes back")
    return target


def _existing(found: T | None, what: str) -> T:
    if found is None:
        raise missing(what, param="id")
    return found


def _intake(tenant: Tenant, id: str) -> IntakeRequest:
    return _existing(tenant.intake_requests.get(id), "intake request")


def _scopes(scopes: Iterable[str] | None) -> list[str]:
    wanted = list(ALL_SCOPES if scopes is None else scopes)
    each(choice(ALL_SCOPES))("scopes", wanted)
    return wanted


def _named(name: str) -> str:
    text("name", name)
    return name


_operation = that(OPERATIONS.__contains__, "the name of an operation, such as patients.create")
_operation_or_all = that(
    [EVERY_OPERATION, *OPERATIONS].__contains__, "the name of an operation, such as patients.create, or * for all"
)
