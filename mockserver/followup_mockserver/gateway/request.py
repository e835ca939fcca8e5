"""Request and response as plain data, and the state that the pipeline keeps while it handles a request."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import attrs

from followup_mockserver.contract.operations import Operation
from followup_mockserver.gateway.parsing import Parser
from followup_mockserver.schema.errors import ServiceError
from followup_mockserver.settings.settings import KeyRecord
from followup_mockserver.state.faults import Fault
from followup_mockserver.state.journal import JournalEntry
from followup_mockserver.state.registry import Registry
from followup_mockserver.state.requests import IdempotencyRecord
from followup_mockserver.state.tenant import Tenant


@attrs.define(kw_only=True)
class Request:
    """A request to an operation. ``repr`` hides everything that may contain personal data.

    Attributes:
        operation: the operation that method and path select.
        path: the path, without the query.
        path_id: the id in the path; None if the path has none.
        headers: names in lower case.
        query: pairs of name and value, in their order.
        body: None if it is larger than the service accepts and was not read.
        read_timeout: seconds after which the client stops waiting, where virtual time passes; None: it does not.
        client_has_left: returns whether the client has closed the connection, where there is one.
    """

    operation: Operation
    path: str
    path_id: str | None = attrs.field(repr=False)
    headers: Mapping[str, str] = attrs.field(repr=False)
    query: Sequence[tuple[str, str]] = attrs.field(repr=False)
    body: bytes | None = attrs.field(repr=False)
    read_timeout: float | None = None
    client_has_left: Callable[[], bool] = attrs.field(default=lambda: False, repr=False)


@attrs.define(kw_only=True)
class Response:
    """A complete response.

    Attributes:
        status: HTTP status.
        headers: headers, without those that the server adds.
        body: the encoded body.
        broken: where a fault drops the connection: ``disconnect`` before the response, ``truncate`` in the middle; or
            ``late``, if the client has stopped waiting.
    """

    status: int
    headers: dict[str, str] = attrs.field(factory=dict)
    body: bytes = attrs.field(repr=False)
    broken: Literal["disconnect", "truncate", "late"] | None = None


@attrs.define(kw_only=True, eq=False)
class Exchange:
    """One request and its response. The steps of the pipeline set the attributes after ``began``.

    Attributes:
        request: the request.
        registry: the tenants of the mock.
        parser: parses the request.
        began: when the request arrived, in seconds of ``RealTime.monotonic``.
        key_value: the value of the API key; None if none was sent.
        known_tenant: the tenant that the key belongs to; None if the key is missing or unknown.
        tenant: ``known_tenant``, or else the default tenant, whose faults and journal apply to such requests.
        key: the valid API key.
        fault: the fault that applies to this request, if any.
        is_fault_applied: whether it has changed the response; an error that precedes it may have prevented that.
        late: whether the client stopped waiting during a delay.
        claimed: the record of the idempotency key, while this request holds it.
        replayed: body of the response to an earlier request with the same idempotency key.
        replay_of: id of that earlier request; None if it is unknown.
        error: the error, if the request failed.
        request_id: id of the request; None until its rule runs.
        ignored_keys: paths of the keys in the data of events that no rule reads.
        about: id of the object that the request created, changed or returned.
        response: the response.
        entry: the entry of the journal, when the request has been recorded.
    """

    request: Request
    registry: Registry
    parser: Parser
    began: float
    key_value: str | None = attrs.field(default=None, repr=False)
    known_tenant: Tenant | None = None
    tenant: Tenant = attrs.field(init=False)
    key: KeyRecord = attrs.field(init=False)
    fault: Fault | None = None
    is_fault_applied: bool = False
    late: bool = False
    claimed: IdempotencyRecord | None = None
    replayed: bytes | None = attrs.field(default=None, repr=False)
    replay_of: str | None = None
    error: ServiceError | None = None
    request_id: str | None = None
    ignored_keys: list[str] = attrs.field(factory=list)
    about: str | None = None
    response: Response = attrs.field(init=False)
    entry: JournalEntry = attrs.field(init=False)

    @property
    def is_replay(self) -> bool:
        """Whether the response is that of an earlier request; False if a fault replaced it."""
        return self.replayed is not None and self.error is None
