"""The view that receives webhooks."""

from collections.abc import Callable
from typing import Any

from django.db.transaction import non_atomic_requests
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from followup.inbox import Inbox


def webhook_of(inbox: Inbox) -> Callable[..., Any]:
    """Return a view that passes requests to an inbox."""

    def webhook(request: HttpRequest) -> HttpResponse:
        """Verify a webhook, and store its event: 204, 400 or 503, as ``inbox.receive`` returns it."""
        return HttpResponse(status=inbox.receive(request.body, request.headers))

    # The signature authenticates the sender. With ATOMIC_REQUESTS, the event would only be stored after the response.
    view: Callable[..., Any] = non_atomic_requests(csrf_exempt(require_POST(webhook)))
    return view
