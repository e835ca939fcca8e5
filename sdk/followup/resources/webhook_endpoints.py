"""Webhook endpoints (specification, sections 2, 3, 4 and 6.2)."""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Literal

import attrs

from followup._annotations import HttpsUrl, MinItems, OutboundEventType, PageLimit, WebhookEndpointId
from followup._operations import NOT_GIVEN, Mode, NotGiven, Resource, delete, get, list_of, patch, post
from followup._pagination import Page
from followup._results import Model, Result, personal
from followup.resources.webhook_deliveries import WebhookDelivery

EnabledEvent = OutboundEventType | Literal["*"]
EnabledEvents = Annotated[Iterable[EnabledEvent], MinItems(1)]
WebhookEndpointStatus = Literal["enabled", "disabled"]


@attrs.define(kw_only=True)
class DeliveryFailure(Model):
    """The last failed attempt of an endpoint.

    Attributes:
        at: when it was.
        message: what went wrong.
    """

    at: datetime
    message: str


@attrs.define(kw_only=True)
class WebhookEndpoint(Result):
    """An endpoint that receives webhooks. ``repr`` never shows its secret.

    Attributes:
        enabled_events: event types that it receives; ``*`` for all.
        status: ``enabled``, or ``disabled`` while sending is paused.
        secret: signs the webhooks; present only in the answer to the creation, so keep it then.
        last_delivered_at: when an attempt last succeeded.
        last_error: the last failed attempt.
    """

    id: WebhookEndpointId
    object: Literal["webhook_endpoint"]
    url: str
    description: str | None = None
    enabled_events: list[EnabledEvent]
    status: WebhookEndpointStatus
    secret: str | None = personal(None, absent_if_none=True)
    last_delivered_at: datetime | None = None
    last_error: DeliveryFailure | None = None
    created_at: datetime


@attrs.define(kw_only=True)
class DeletedObject(Result):
    """What is left of a deleted object.

    Attributes:
        deleted: true on success.
    """

    id: str
    object: str
    deleted: bool


class WebhookEndpoints(Resource[Mode], group="webhook_endpoints"):
    """Where the service sends its webhooks."""

    @post("/v1/webhook_endpoints")
    def create(
        self,
        *,
        url: HttpsUrl,
        enabled_events: EnabledEvents,
        description: str | None | NotGiven = NOT_GIVEN,
        idempotency_key: str | None = None,
    ) -> WebhookEndpoint:
        """Create an endpoint; the answer, and no later one, carries its ``secret``.

        (Specification, section 4, Webhook endpoints and deliveries.)

        Args:
            url: https URL that the webhooks are posted to.
            enabled_events: event types to receive; ``["*"]`` for all.
            description: for your team.
            idempotency_key: made for you when omitted.
        """
        ...

    @get("/v1/webhook_endpoints/{id}")
    def retrieve(self, id: WebhookEndpointId, /) -> WebhookEndpoint:
        """Retrieve an endpoint, without its secret (specification, section 4)."""
        ...

    @patch("/v1/webhook_endpoints/{id}")
    def update(
        self,
        id: WebhookEndpointId,
        /,
        *,
        url: HttpsUrl | NotGiven = NOT_GIVEN,
        enabled_events: EnabledEvents | NotGiven = NOT_GIVEN,
        description: str | None | NotGiven = NOT_GIVEN,
        disabled: bool | NotGiven = NOT_GIVEN,
    ) -> WebhookEndpoint:
        """Update an endpoint. Omitted fields stay unchanged (specification, section 4).

        Args:
            id: id of the endpoint, begins with ``we_``.
            url: https URL that the webhooks are posted to.
            enabled_events: event types to receive; ``["*"]`` for all.
            description: for your team; None clears it.
            disabled: true pauses sending and stops pending retries.
        """
        ...

    @delete("/v1/webhook_endpoints/{id}")
    def delete(self, id: WebhookEndpointId, /) -> DeletedObject:
        """Delete an endpoint, its delivery history and its pending deliveries.

        A retry that finds it gone counts as done (specification, section 4).
        """
        ...

    @post("/v1/webhook_endpoints/{id}/ping")
    def ping(self, id: WebhookEndpointId, /, *, idempotency_key: str | None = None) -> WebhookDelivery:
        """Queue a signed ``webhook.ping`` to the endpoint, with the same retries as a real event.

        (Specification, section 4.)

        Args:
            id: id of the endpoint, begins with ``we_``.
            idempotency_key: made for you when omitted.
        """
        ...

    @list_of("/v1/webhook_endpoints")
    def list(
        self,
        *,
        limit: PageLimit | None | NotGiven = NOT_GIVEN,
        starting_after: WebhookEndpointId | None | NotGiven = NOT_GIVEN,
        ending_before: WebhookEndpointId | None | NotGiven = NOT_GIVEN,
    ) -> Page[WebhookEndpoint]:
        """List endpoints, newest first, without their secrets (specification, section 4).

        Args:
            limit: items per page, 1 to 100.
            starting_after: id of the last object of the previous page; returns the following.
            ending_before: id of the first object of the current page; returns the preceding.
        """
        ...
