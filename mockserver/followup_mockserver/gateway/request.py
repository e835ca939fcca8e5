"""A request and its response as plain data, and the exchange of the two."""

from collections.abc import Mapping, Sequence
from typing import Literal

import attrs

from followup_mockserver.contract.operations import Operation
from followup_mockserver.gateway.parsing import Parser
from followup_mockserver.settings import KeyRecord
from followup_mockserver.state.idempotency import IdempotencyRecord
from followup_mockserver.state.registry import Registry
from followup_mockserver.state.request_faults import Fault
from followup_mockserver.state.tenant import Tenant


@attrs.define(kw_only=True)
class Request:
    """A request as it arrived. ``repr`` shows nothing of its content.

    Attributes:
        headers: names in lower case.
        query: pairs of name and value, in their order.
        path_id: the id in the path; None where the path has none.
        body: None where it is larger than the service accepts, and was not read.
    """

    operation: Operation
    path: str
    path_id: str | None = attrs.field(repr=False)
    headers: Mapping[str, str] = attrs.field(repr=False)
    query: Sequence[tuple[str, str]] = attrs.field(repr=False)
    body: bytes | None = attrs.field(repr=False)


@attrs.define(kw_only=True)
class Response:
    """A response, complete.

    Attributes:
        broken: how a fault drops the connection: ``disconnect`` before the response, ``truncate`` in the middle of it.
    """

    status: int
    headers: dict[str, str] = attrs.field(factory=dict)
    body: bytes = attrs.field(repr=False)
    broken: Literal["disconnect", "truncate"] | None = None


@attrs.define(kw_only=True, eq=False)
class Exchange:
    """A request on its way to a response. The steps of the pipeline fill in the rest.

    Attributes:
        registry: the tenants of the mock.
        parser: parses the request under the options of the mock.
        began: when the request arrived, in real time.
        key_value: the value of the API key, if one was sent.
        known_tenant: the tenant that the key belongs to; None for a key that nobody has.
        tenant: the same, or else the default one: it has the faults and the journal of requests without a valid key.
        key: the API key.
        fault: the fault that applies to this request.
        claimed: set while this request is the one that uses its idempotency key.
        replayed: the body of the response to an earlier request with the same idempotency key.
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
    claimed: IdempotencyRecord | None = None
    replayed: bytes | None = attrs.field(default=None, repr=False)
    response: Response = attrs.field(init=False)
