"""Webhook deliveries (specification, sections 2, 3, 4 and 6.2)."""

# pyright: reportReturnType=false

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

import attrs

from followup._core.api_rules import OutboundEventType, PageLimit, WebhookDeliveryId, WebhookEndpointId
from followup._core.operations import NOT_GIVEN, NotGiven, Page, Resource, get, list_of
from followup._core.results import Result, personal

WebhookDeliveryStatus = Literal["pending", "succeeded", "failed"]


@attrs.define(kw_only=True, eq=False, repr=False)
class WebhookDelivery(Result):
    """The delivery of one event to one endpoint (specification, section 2). ``repr`` does not show its payload.

    Attributes:
        id: id of the delivery, the same in every attempt; also the ``id`` in the body that the endpoint receives.
        webhook_endpoint: id of the endpoint.
        status: ``pending`` (in progress or waiting for a retry), ``succeeded`` or ``failed`` (no retries left).
        attempts: number of attempts so far.
        last_status_code: HTTP status of the last response.
        last_error: error of the last failed attempt.
        next_attempt_at: time of the next attempt.
        delivered_at: time of the successful attempt.
        payload: the body of the webhook, exactly as it is sent.
    """

    id: WebhookDeliveryId
    object: Literal["webhook_delivery"]
    webhook_endpoint: WebhookEndpointId
    event_type: OutboundEventType
    status: WebhookDeliveryStatus
    attempts: int
    last_status_code: int | None = None
    last_error: str | None = None
    next_attempt_at: datetime | None = None
    delivered_at: datetime | None = None
    payload: Mapping[str, Any] = personal()
    created_at: datetime


class WebhookDeliveries(Resource, group="webhook_deliveries"):
    """Deliveries of webhooks to endpoints, and their attempts."""

    @get("/v1/webhook_deliveries/{id}")
    def retrieve(self, id: WebhookDeliveryId, /) -> WebhookDelivery:
        """Retrieve a delivery (specification, section 4, Webhook endpoints and deliveries).

        Args:
            id: id of the delivery, begins with ``whd_``.

        Returns:
            The delivery.

        Raises:
            NotFoundError: there is no such delivery.
        """

    @list_of("/v1/webhook_deliveries")
    def list(
        self,
        *,
        limit: PageLimit | None | NotGiven = NOT_GIVEN,
        starting_after: WebhookDeliveryId | None | NotGiven = NOT_GIVEN,
        ending_before: WebhookDeliveryId | None | NotGiven = NOT_GIVEN,
        webhook_endpoint: WebhookEndpointId | None | NotGiven = NOT_GIVEN,
        status: WebhookDeliveryStatus | None | NotGiven = NOT_GIVEN,
    ) -> Page[WebhookDelivery]:
        """List deliveries, newest first (specification, section 4, Webhook endpoints and deliveries).

        Args:
            limit: items per page, 1 to 100.
            starting_after: id of the last item of a page, to get the page after it.
            ending_before: id of the first item of a page, to get the page before it.
            webhook_endpoint: only deliveries to this endpoint.
            status: only deliveries with this status.

        Returns:
            The first page of deliveries.
        """
