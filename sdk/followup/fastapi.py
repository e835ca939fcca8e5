"""Webhooks in FastAPI and in Starlette: a dependency that verifies them, and a router that stores them in an inbox.

It needs what imports it, one of these frameworks, and no extra of followup; nothing in followup imports it.
"""

import logging
from collections.abc import Callable, Coroutine, Iterable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from followup._core.errors import WebhookSignatureError
from followup._core.tracebacks import clears_frames
from followup.resources.webhook_event import WebhookEvent
from followup.webhooks import MAX_BODY, checked_secrets, construct_event, secrets_of_environment

if find_spec("starlette") is None:
    raise ModuleNotFoundError(
        "followup.fastapi needs FastAPI or Starlette, which are not installed: python -m pip install fastapi",
        name="starlette",
    )

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

if TYPE_CHECKING:
    from fastapi import APIRouter

    from followup.inbox import Inbox

logger: logging.Logger = logging.getLogger("followup.fastapi")


@clears_frames
def webhook_event(secret: str | Iterable[str] | None = None) -> Callable[[Request], Coroutine[Any, Any, WebhookEvent]]:
    """Return a dependency of FastAPI that verifies a webhook request (specification, section 6.2, Signature).

    It adds nothing to the OpenAPI document of the application. In Starlette, and in a function that has the request,
    await it: ``event = await verified(request)``. The event loop is not blocked. The body is read once, so code after
    it cannot read it again.

    Example::

        @app.post("/webhooks/followup", status_code=204)
        async def hook(event: WebhookEvent = Depends(webhook_event())) -> None: ...

    Args:
        secret: the endpoint's ``whsec_...`` secret, or several of them during a rotation. By default those of the
            environment variable ``FOLLOWUP_WEBHOOK_SECRET``, where a comma separates several; it is read now.

    Returns:
        A coroutine function that takes the request and returns its event. It raises an ``HTTPException`` of Starlette:
        400 if the request is not genuine, with a ``detail`` that does not say why, which is in the log; 413 if the
        body is larger than 2 MiB.

    Raises:
        ConfigurationError: there is no secret.
        TypeError, ValueError: ``secret`` is invalid.
    """
    secrets = [each.decode() for each in checked_secrets(secrets_of_environment() if secret is None else secret)]

    @clears_frames
    async def verified(request: Request) -> WebhookEvent:
        body = await _read(request)
        try:
            # In a thread, because of up to 2 MiB to hash and parse, and of the imports of the first event.
            return await run_in_threadpool(construct_event, body, request.headers, secrets)
        except WebhookSignatureError as error:
            logger.warning("webhook rejected: %s", error)
        raise HTTPException(400, "This is not a genuine webhook.")

    return verified


async def _read(request: Request) -> bytes:
    """Return the body of a request, of which no more than the limit is in memory."""
    body = bytearray()
    try:
        async for part in request.stream():
            body += part
            if len(body) > MAX_BODY:
                raise HTTPException(413, f"A webhook has at most {MAX_BODY} bytes.")
    except ClientDisconnect:
        raise HTTPException(400, "The request ended within its body.") from None
    return bytes(body)


def inbox_router(inbox: "Inbox", path: str) -> "APIRouter":
    """Return a router of FastAPI that stores webhooks in an inbox, for ``app.include_router``.

    It responds as ``inbox.receive`` does: 204, 400 or 503; 413 to a body of more than 2 MiB. It is not in the OpenAPI
    document of the application, and does not block the event loop. In Starlette, add ``Route(path, inbox.asgi_app)`` to
    your routes instead.

    Args:
        inbox: the inbox. Its handlers are called by its own ``run`` or ``drain``.
        path: path of the webhook's URL, such as ``/webhooks/followup``.

    Returns:
        The router.
    """
    from fastapi import APIRouter

    router = APIRouter()

    @router.post(path, include_in_schema=False)
    @clears_frames
    async def store(request: Request) -> Response:
        body = await _read(request)
        return Response(status_code=await run_in_threadpool(inbox.receive, body, request.headers))

    return router
