"""The table of operations: the declarations of the SDK, with the properties that only the service knows.

The routes, the gateway and the OpenAPI document are derived from it. To add an operation, declare it in the SDK, write
its rule, and add its row here.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from followup import _for_mockserver as sdk
from followup_mockserver.rules import (
    account,
    appointments,
    events,
    intake_requests,
    list_of,
    patients,
    treatments,
    visits,
    webhook_endpoints,
)
from followup_mockserver.world.schema.shapes import shape_of_parameters
from followup_mockserver.world.schema.validation import Shape
from followup_mockserver.world.state.tenant import Tenant

FOLLOW_UP = "follow_up"
"""The service line that some operations require (specification, section 1)."""


def _retrieve(_: Tenant, found: Any) -> Any:
    """Return the object with the id in the path, which the gateway has found."""
    return found


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Row:
    """The properties of an operation that only the service knows.

    Attributes:
        scope: scope that the API key needs; None: any valid key is allowed.
        rule: the function that carries out the operation.
        line: whether the organization needs the ``follow_up`` service line.
        takes_key: whether the rule takes the API key of the request as ``key``.
        unchangeable: fields of the resource that this operation cannot change.
        optional_body: whether the body may be omitted, although the operation has body parameters.
        batch: whether the body is a batch of events, which the rule validates, and the result has one for each.
    """

    scope: str | None
    rule: Callable[..., Any] = _retrieve
    line: bool = False
    takes_key: bool = False
    unchangeable: tuple[str, ...] = ()
    optional_body: bool = False
    batch: bool = False


_ROWS: dict[str, Row] = {
    "account.retrieve": Row(scope=None, rule=account.retrieve, takes_key=True),
    "patients.create": Row(scope="patients:write", line=True, rule=patients.create),
    "patients.retrieve": Row(scope="patients:read"),
    "patients.update": Row(scope="patients:write", line=True, rule=patients.update, unchangeable=("phone",)),
    "patients.list": Row(scope="patients:read", rule=patients.list_),
    "doctors.retrieve": Row(scope="doctors:read"),
    "doctors.list": Row(scope="doctors:read", rule=list_of("doctors", "active", "external_id")),
    "appointments.create": Row(scope="appointments:write", line=True, rule=appointments.create),
    "appointments.retrieve": Row(scope="appointments:read"),
    "appointments.update": Row(scope="appointments:write", line=True, rule=appointments.update),
    "appointments.cancel": Row(scope="appointments:write", line=True, rule=appointments.cancel, optional_body=True),
    "appointments.list": Row(scope="appointments:read", rule=appointments.list_),
    "visits.create": Row(scope="visits:write", line=True, rule=visits.create),
    "visits.retrieve": Row(scope="visits:read"),
    "visits.list": Row(scope="visits:read", rule=list_of("visits", "patient", "external_id")),
    "intake_requests.create": Row(scope="intake_requests:write", line=True, rule=intake_requests.create),
    "intake_requests.retrieve": Row(scope="intake_requests:read"),
    "intake_requests.list": Row(scope="intake_requests:read", rule=list_of("intake_requests", "status", "patient")),
    "treatments.create": Row(scope="treatments:write", line=True, rule=treatments.create),
    "treatments.retrieve": Row(scope="treatments:read"),
    "treatments.list": Row(scope="treatments:read", rule=list_of("treatments", "patient", "active")),
    "events.create": Row(scope="events:write", line=True, rule=events.create, batch=True),
    "events.retrieve": Row(scope="events:read"),
    "events.list": Row(scope="events:read", rule=list_of("events", "type", "status", "source")),
    "webhook_endpoints.create": Row(scope="webhooks:write", rule=webhook_endpoints.create),
    "webhook_endpoints.retrieve": Row(scope="webhooks:read"),
    "webhook_endpoints.update": Row(scope="webhooks:write", rule=webhook_endpoints.update),
    "webhook_endpoints.delete": Row(scope="webhooks:write", rule=webhook_endpoints.delete),
    "webhook_endpoints.ping": Row(scope="webhooks:write", rule=webhook_endpoints.ping),
    "webhook_endpoints.list": Row(scope="webhooks:read", rule=list_of("webhook_endpoints")),
    "webhook_deliveries.retrieve": Row(scope="webhooks:read"),
    "webhook_deliveries.list": Row(
        scope="webhooks:read", rule=list_of("webhook_deliveries", "webhook_endpoint", "status")
    ),
}


def for_any_language(text: str) -> str:
    """Return a text of a docstring as CommonMark, with one line for each paragraph."""
    return re.sub(r"(?<!\n)\n(?!\n)", " ", text.replace("``", "`"))


@attrs.frozen(kw_only=True, eq=False, slots=False, repr=False)
class Operation:
    """An operation of the service. Its shapes are derived from the declaration when they are first needed.

    Attributes:
        name: name, such as ``patients.create``.
        method: HTTP method.
        path: path template, such as ``/v1/patients/{id}``.
        group: resource group, and name of the collection that has the objects of the group.
        declaration: the declaration in the SDK.
        row: the properties that only the service knows.
    """

    name: str
    method: str
    path: str
    group: str
    declaration: sdk.Declaration
    row: Row

    @sdk.lazy
    def query(self) -> Shape:
        """The shape of the query parameters."""
        return self._shape("query")

    @sdk.lazy
    def body(self) -> Shape | None:
        """The shape of the body; None: the rule takes the whole body as ``body``, and validates it."""
        has_parts = all(each.place != "whole_body" for each in self.declaration.parameters)
        return self._shape("body") if has_parts else None

    @property
    def description(self) -> str:
        """What the operation does, as CommonMark and in words for any language; the first paragraph is a summary."""
        return for_any_language(self.declaration.description)

    @property
    def meanings(self) -> Mapping[str, str]:
        """The meaning of each parameter, by its name in Python."""
        return {name: for_any_language(text) for name, text in self.declaration.meanings.items()}

    def _shape(self, place: str) -> Shape:
        return shape_of_parameters(each for each in self.declaration.parameters if each.place == place)

    @sdk.lazy
    def has_path_id(self) -> bool:
        """Whether the path has the id of an object."""
        return self.declaration.id_prefix is not None

    @sdk.lazy
    def takes_body(self) -> bool:
        """Whether a request can have a body."""
        return self.method in ("POST", "PATCH")

    @sdk.lazy
    def body_required(self) -> bool:
        """Whether a request without a body is invalid."""
        has_fields = self.body is None or bool(self.body.schema["properties"])
        return self.takes_body and has_fields and not self.row.optional_body


def is_batch(operation: str | None) -> bool:
    """Return whether the operation with this name takes a batch of events."""
    return operation is not None and OPERATIONS[operation].row.batch


OPERATIONS: Mapping[str, Operation] = {
    name: Operation(
        name=name,
        method=declaration.method,
        path=declaration.path,
        group=sdk.group_name(group),
        declaration=declaration,
        # A declaration without a row ends the import: it has no scope and no rule.
        row=_ROWS[name],
    )
    for group in sdk.all_groups()
    for name, declaration in sdk.declarations_of(group).items()
}
"""The 32 operations, by name."""
