"""Organizations, their settings and their API keys; snapshots of the state, and the reset to the state at start."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, TypedDict

import attrs

from followup import NOT_GIVEN, Account, NotGiven
from followup._for_mockserver import FrozenValue, OutboundEventType, ServiceLine
from followup_mockserver.control.arguments import arguments_of
from followup_mockserver.rules import account
from followup_mockserver.world.schema.errors import boolean, instant, list_of, one_of, text
from followup_mockserver.world.settings import ALL_SCOPES, KeyRecord
from followup_mockserver.world.state.records import copied, passed
from followup_mockserver.world.state.snapshots import SnapshotSource
from followup_mockserver.world.state.tenant import Tenant
from followup_mockserver.world.state.tenant_access import TenantAccess, existing


class KeyInput(TypedDict, total=False):
    """An API key of a new organization; both keys are optional.

    Keys:
        name: name of the key; default ``default``.
        scopes: scopes such as ``patients:read`` (specification, section 5); default: all.
    """

    name: str
    scopes: list[str]


@attrs.frozen(kw_only=True, eq=False, repr=False)
class NewOrganization(FrozenValue):
    """An organization, with the API keys that have just been created for it.

    Attributes:
        organization: the organization, as ``account.retrieve`` returns it to the first key.
        keys: the new keys; ``keys[0].value`` is the ``api_key`` of a client.
    """

    organization: Account
    keys: list[KeyRecord]


class OrganizationControls:
    """Create organizations, change settings and API keys, and reset the state."""

    _access: TenantAccess

    def create_organization(
        self,
        *,
        name: str = "Organization",
        service_lines: list[ServiceLine] | None = None,
        livemode: bool = False,
        keys: list[KeyInput] | None = None,
    ) -> NewOrganization:
        """Create an organization with data, clock, faults, journal and rate limit of its own.

        Args:
            name: name of the organization.
            service_lines: ``follow_up`` and ``network``; default: both.
            livemode: whether it is a production organization instead of a test one.
            keys: API keys to create; default: one key with all scopes.

        Returns:
            The organization and its new keys.

        Raises:
            ValueError: an invalid argument; the message names it.
        """
        settings: dict[str, Any] = {"name": name, "livemode": livemode}
        if service_lines is not None:
            settings["service_lines"] = service_lines
        wanted = [
            (key.get("name", "default"), _scopes(key.get("scopes"), f"keys[{position}].scopes"))
            for position, key in enumerate(keys or [KeyInput()])
        ]
        tenant = self._access.registry.create(settings, wanted)
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
        activated_events: list[OutboundEventType] | NotGiven = NOT_GIVEN,
        country: str | NotGiven = NOT_GIVEN,
        language: str | NotGiven = NOT_GIVEN,
        mobiles: str | NotGiven = NOT_GIVEN,
        ref: str | NotGiven = NOT_GIVEN,
    ) -> Account:
        """Update the settings of the organization. Omitted settings stay unchanged.

        Appointments that are already booked keep their reminders, and open intake requests keep their list of missing
        data.

        Args:
            name: name of the organization.
            service_lines: the service lines: follow_up, network, or both.
            time_zone: IANA name of the time zone in which messages to patients show times.
            reminder_hours: hours before an appointment at which reminders are sent; an empty list for none.
            post_visit_hours: hours after a visit at which the follow-up message is sent.
            intake_messages: whether the service asks patients for the data that an intake request is missing.
            intake_required: the data that an intake request needs to become ready, such as ``coverage.insurer``.
            activated_events: outbound event types that the service does not send yet (specification, section 6.2) and
                that it sends from now on: ``order.issued``, ``conversation.handoff`` and ``patient.silent``.
            country: ISO 3166 code of the country of phone numbers without a country code.
            language: language of the messages to patients: ``es``, ``en`` or ``pt``.
            mobiles: ``keep`` Argentine numbers that lack the 9 of a mobile number, or ``assume`` that a number that has
                the form of a landline is the mobile number.
            ref: what the ``ref`` of a webhook names: the object that is ``described``, or the inbound event that was
                the ``trigger``, where there was one.

        Returns:
            The organization after the change.

        Raises:
            ValueError: an invalid setting; then none is changed.
        """
        changes = passed(**arguments_of(locals()))

        def change(tenant: Tenant) -> Account:
            # A new object, whose validators check every setting before anything changes.
            tenant.organization = attrs.evolve(tenant.organization, **changes)
            return account.retrieve(tenant, key=next(iter(tenant.keys.values())))

        return self._access.change("update_organization", change)

    def add_api_key(self, *, name: str = "key", scopes: list[str] | None = None) -> KeyRecord:
        """Add an API key to the organization.

        Args:
            name: name of the key.
            scopes: scopes such as ``patients:read`` (specification, section 5); default: all.

        Returns:
            The new key.

        Raises:
            ValueError: an invalid argument; the message names it.
        """
        text("name", name)
        return copied(self._access.registry.add_key(self._access.tenant, name, _scopes(scopes)))

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
            value: the key itself, such as ``fu_test_mock``.
            revoked: whether requests with the key are rejected.
            expires_at: when the key expires, on the mock's clock; a time with an offset: 2030-05-17T14:30:00-03:00;
                null: never.

        Returns:
            The key after the change.

        Raises:
            ServiceError: 404: there is no such key.
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

        return self._access.change("update_api_key", change)

    def reset(self) -> None:
        """Return to the state at start: clock, data, settings, API keys, faults, journal and idempotency keys.

        On a ``MockService`` or ``MockServer`` this resets the whole mock and removes the organizations that were
        created. On the controls that ``organization(key)`` returned it resets that organization only.
        """
        self._access.reset()

    def save(self) -> dict[str, Any]:
        """Return the state as JSON-compatible data.

        On a ``MockService`` or ``MockServer`` this is the state of the whole mock, on the controls that
        ``organization(key)`` returned that of the organization. The state consists of the organizations with their
        settings, all records, the clock, pending jobs, deliveries and attempts, messages, idempotency keys, faults, the
        history, and the counters for new ids. It does not contain the journal and the windows of the rate limit.
        A request or a delivery attempt that is in progress counts as not yet begun.

        The data contains personal data, API keys and signing secrets.

        Returns:
            A new dict, for ``json.dump``, ``restore`` and ``MockService.load``.
        """
        return self._access.save()

    def restore(self, state: SnapshotSource) -> None:
        """Replace the state by a saved one. Nothing of the current state remains, and none of its webhooks is sent.

        On a ``MockService`` or ``MockServer`` this replaces all organizations. The options of the mock, its mounted
        applications and the state that ``reset`` returns to stay as they are.

        On the controls that ``organization(key)`` returned it replaces the state of that organization by a snapshot of
        one organization. If that is the same organization, its API keys are restored as well. A snapshot of another
        organization can be loaded into any number of organizations: each keeps its own id and API keys.

        Args:
            state: the data that ``save`` returned, its JSON text (``str`` or ``bytes``), or the path of a file with
                this text (``pathlib.Path``).

        Raises:
            OSError: the file cannot be read.
            ServiceError: 409: an API key in the snapshot belongs to another organization.
            ValueError: an invalid snapshot, or one of a newer version of followup; the message names the place, and
                nothing has changed.
        """
        self._access.restore(state)


def _scopes(scopes: Iterable[str] | None, argument: str = "scopes") -> list[str]:
    wanted = list(ALL_SCOPES if scopes is None else scopes)
    list_of(one_of(ALL_SCOPES))(argument, wanted)
    return wanted
