"""Whose state the test controls act on, and its configuration: organizations, settings and API keys."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, TypedDict, TypeVar

import attrs

from followup import NOT_GIVEN, Account, NotGiven
from followup._for_mockserver import ServiceLine
from followup_mockserver.engine import Engine
from followup_mockserver.rules import account
from followup_mockserver.schema.checks import boolean, choice, each, instant, text
from followup_mockserver.schema.errors import ServiceError, missing
from followup_mockserver.settings import ALL_SCOPES, KeyRecord
from followup_mockserver.state.copies import copied
from followup_mockserver.state.registry import Registry
from followup_mockserver.state.tenant import Tenant
from followup_mockserver.webhooks.mounts import Mounts

T = TypeVar("T")


class KeyInput(TypedDict, total=False):
    """A key for a new organization: its name, and its scopes (default: all)."""

    name: str
    scopes: list[str]


@attrs.frozen(kw_only=True)
class NewOrganization:
    """An organization, and those of its keys that have just been created, with their values."""

    organization: Account
    keys: list[KeyRecord]


class OrganizationControls:
    """One organization, its settings and its keys; the base of the other test controls.

    Args:
        registry: the tenants of the mock.
        engine: runs their jobs.
        mounts: the receivers in this process.
        key: a key of the organization; None: the default organization.
    """

    def __init__(self, registry: Registry, engine: Engine, mounts: Mounts, key: str | None = None) -> None:
        self._registry = registry
        self._engine = engine
        self._mounts = mounts
        self._key = key

    @property
    def _tenant(self) -> Tenant:
        """The state of the organization. A reset replaces it."""
        tenant = self._registry.default if self._key is None else self._registry.by_key(self._key)
        if tenant is None:
            raise ServiceError(401, "authentication_error", "api_key_invalid", "There is no such API key.")
        return tenant

    def _change(self, change: Callable[[Tenant], T]) -> T:
        """Change the state under its lock, and return a copy of the result."""
        tenant = self._tenant
        with tenant.lock:
            result = change(tenant)
            tenant.notify()
            return copied(result)

    def create_organization(
        self,
        *,
        name: str = "Organization",
        service_lines: list[ServiceLine] | None = None,
        livemode: bool = False,
        keys: list[KeyInput] | None = None,
    ) -> NewOrganization:
        """Create an organization, isolated from the others.

        Args:
            name: its name.
            service_lines: default: both.
            livemode: whether its objects are real.
            keys: its API keys; default: one with all scopes.

        Raises:
            ValueError: an invalid argument; the message names it.
        """
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
        """Update the settings of the organization. Omitted settings stay unchanged.

        Booked appointments keep their reminders, and open intake requests keep their list of missing data.

        Args:
            name: its name.
            service_lines: the lines that it has.
            time_zone: IANA name; messages to patients show times in it.
            reminder_hours: hours before an appointment at which a reminder is sent.
            post_visit_hours: hours after a visit at which the follow-up message is sent.
            intake_messages: whether the service asks patients for the data that an intake request is missing.
            intake_required: the data that an intake request needs to become ready.
            country: ISO 3166 code; phone numbers without a country code belong to it.
            language: of the messages to patients: ``es``, ``en`` or ``pt``.

        Raises:
            ValueError: an invalid setting; nothing is changed then.
        """
        changes = passed(
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

        return self._change(change)

    def add_api_key(self, *, name: str = "key", scopes: list[str] | None = None) -> KeyRecord:
        """Add an API key to the organization.

        Args:
            name: its name.
            scopes: default: all.

        Raises:
            ValueError: an invalid argument; the message names it.
        """
        text("name", name)
        return copied(self._registry.add_key(self._tenant, name, _scopes(scopes)))

    def update_api_key(
        self,
        value: str,
        /,
        *,
        revoked: bool | NotGiven = NOT_GIVEN,
        expires_at: datetime | str | None | NotGiven = NOT_GIVEN,
    ) -> KeyRecord:
        """Update an API key. Omitted fields stay unchanged.

        Args:
            value: the key itself.
            revoked: whether it is revoked.
            expires_at: an aware datetime or an ISO 8601 string; None: it does not expire.

        Raises:
            ServiceError: there is no such key.
            ValueError: an invalid argument; the message names it.
        """
        if isinstance(expires_at, (datetime, str)):
            expires_at = instant("expires_at", expires_at)
        if not isinstance(revoked, NotGiven):
            boolean("revoked", revoked)
        changes = passed(revoked=revoked, expires_at=expires_at)

        def change(tenant: Tenant) -> KeyRecord:
            key = existing(tenant.keys.get(value), "API key")
            for field, changed in changes.items():
                setattr(key, field, changed)
            return key

        return self._change(change)

    def reset(self) -> None:
        """Return to the state at start: the whole mock, or the one organization that ``organization(key)`` chose."""
        self._registry.reset(None if self._key is None else self._tenant)


def tenant_of(control: OrganizationControls) -> Tenant:
    """Return the state that these controls act on, for the control API and the dashboard."""
    return control._tenant


def change(control: OrganizationControls, change: Callable[[Tenant], T]) -> T:
    """Change the state that these controls act on, under its lock, and return a copy of the result."""
    return control._change(change)


def passed(**arguments: Any) -> dict[str, Any]:
    """Return copies of the arguments that were not omitted."""
    return {name: copied(value) for name, value in arguments.items() if value is not NOT_GIVEN}


def existing(found: T | None, what: str) -> T:
    """Return what was found.

    Raises:
        ServiceError: it is None.
    """
    if found is None:
        raise missing(what, param="id")
    return found


def _scopes(scopes: Iterable[str] | None) -> list[str]:
    wanted = list(ALL_SCOPES if scopes is None else scopes)
    each(choice(ALL_SCOPES))("scopes", wanted)
    return wanted
