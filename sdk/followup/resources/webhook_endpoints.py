"""Webhook endpoints (specification, sections 2, 3, 4 and 6.2)."""

# pyright: reportReturnType=false

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Literal

import attrs

from followup._core.api_rules import HttpsUrl, MinItems, OutboundEventType, PageLimit, WebhookEndpointId
from followup._core.operations import NOT_GIVEN, NotGiven, Page, Resource, delete, get, list_of, patch, post
from followup._core.results import Model, Result, secret
from followup.resources.webhook_deliveries import WebhookDelivery

EnabledEvent = OutboundEventType | Literal["*"]
EnabledEvents = Annotated[Iterable[EnabledEvent], MinItems(1)]
WebhookEndpointStatus = Literal["enabled", "disabled"]


@attrs.define(kw_only=True, eq=False, repr=False)
class DeliveryFailure(Model):
    """The last failed attempt of an endpoint.

    Attributes:
        at: time of the attempt.
        message: description of the failure.
    """

    at: datetime
    message: str


@attrs.define(kw_only=True, eq=False, repr=False)
class WebhookEndpoint(Result):
    """An endpoint that receives webhooks (specification, section 2). ``repr`` never shows its secret.

    Attributes:
        enabled_events: event types that it receives; ``*`` for all.
        status: ``enabled``, or ``disabled`` while sending is paused.
        secret: secret that signs the webhooks. Only the response to its creation has it: store it then.
        last_delivered_at: time of the last successful attempt.
        last_error: the last failed attempt.
    """

    id: WebhookEndpointId
    object: Literal["webhook_endpoint"]
    url: str
    description: str | None = None
    enabled_events: list[EnabledEvent]
    status: WebhookEndpointStatus
    secret: str | None = secret()
    last_delivered_at: datetime | None = None
    last_error: DeliveryFailure | None = None
    created_at: datetime


@attrs.define(kw_only=True, eq=False, repr=False)
class DeletedObject(Result):
    """Confirmation that an object was deleted (specification, section 2).

    Attributes:
        id: id of the deleted object.
        object: type of the deleted object, such as ``webhook_endpoint``.
        deleted: true on success.
    """

    id: str
    object: str
    deleted: bool


class WebhookEndpoints(Resource, group="webhook_endpoints"):
    """Endpoints of yours that the service sends webhooks to."""

    @post("/v1/webhook_endpoints")
    def create(
        self,
        *,
        url: HttpsUrl,
        enabled_events: EnabledEvents,
        description: str | None | NotGiven = NOT_GIVEN,
        idempotency_key: str | None = None,
    ) -> WebhookEndpoint:
        """Create an endpoint. Its ``secret`` is returned here and never again.

        (Specification, section 4, Webhook endpoints and deliveries.)

        Args:
            url: https URL that webhooks are posted to.
            enabled_events: event types to receive; ``*`` for all.
            description: description for your team.
            idempotency_key: 1 to 255 printable ASCII characters; generated if omitted.

        Returns:
            The new endpoint, with its ``secret``.
        """

    @get("/v1/webhook_endpoints/{id}")
    def retrieve(self, id: WebhookEndpointId, /) -> WebhookEndpoint:
        """Retrieve an endpoint, without its secret (specification, section 4).

        Args:
            id: id of the endpoint, begins with ``we_``.

        Returns:
            The endpoint.

        Raises:
            NotFoundError: there is no such endpoint.
        """

    @patch("/v1/webhook_endpoints/{id}")
    def update(
        self,
        id: WebhookEndpointId,
        /,
        *,
        # Without None, which an update sends as null: of these only the description is nullable (section 2).
        url: HttpsUrl | NotGiven = NOT_GIVEN,
        enabled_events: EnabledEvents | NotGiven = NOT_GIVEN,
        description: str | None | NotGiven = NOT_GIVEN,
        disabled: bool | NotGiven = NOT_GIVEN,
    ) -> WebhookEndpoint:
        """Update an endpoint. Omitted fields stay unchanged (specification, section 4).

        Args:
            id: id of the endpoint, begins with ``we_``.
            url: https URL that webhooks are posted to.
            enabled_events: event types to receive; ``*`` for all.
            description: description for your team.
            disabled: whether to pause sending, which also stops pending retries.

        Returns:
            The endpoint after the update, without its secret.

        Raises:
            NotFoundError: there is no such endpoint.
        """

    @delete("/v1/webhook_endpoints/{id}")
    def delete(self, id: WebhookEndpointId, /) -> DeletedObject:
        """Delete an endpoint with its delivery history, and cancel its pending deliveries.

        When an earlier attempt of the same call may have deleted the endpoint, a 404 is a success
        (specification, section 4, Webhook endpoints and deliveries).

        Args:
            id: id of the endpoint, begins with ``we_``.

        Returns:
            The confirmation.

        Raises:
            NotFoundError: there is no such endpoint.
        """

    @post("/v1/webhook_endpoints/{id}/ping")
    def ping(self, id: WebhookEndpointId, /, *, idempotency_key: str | None = None) -> WebhookDelivery:
        """Queue a signed ``webhook.ping`` to the endpoint, with the same retries as a real event.

        (Specification, section 4.)

        Args:
            id: id of the endpoint, begins with ``we_``.
            idempotency_key: 1 to 255 printable ASCII characters; generated if omitted.

        Returns:
            The delivery of the ping.

        Raises:
            NotFoundError: there is no such endpoint.
        """

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
            starting_after: id of the last item of a page, to get the page after it.
            ending_before: id of the first item of a page, to get the page before it.

        Returns:
            The first page of endpoints.
        """
