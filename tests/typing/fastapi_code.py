"""An application of FastAPI and one of Starlette, as users write them."""

from typing import Annotated, assert_type

from fastapi import Depends, FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from followup import WebhookEvent
from followup.fastapi import inbox_router, webhook_event
from followup.inbox import Inbox

verified = webhook_event(["whsec_1", "whsec_2"])
Verified = Annotated[WebhookEvent, Depends(verified)]

app = FastAPI()
inbox = Inbox("sqlite:////var/lib/clinic/clinic.db")
app.include_router(inbox_router(inbox, "/webhooks/followup"))


@app.post("/webhooks", status_code=204)
async def hook(event: Verified) -> None:
    assert_type(event, WebhookEvent)


async def receive(request: Request) -> Response:
    event = await webhook_event()(request)
    assert_type(event, WebhookEvent)
    return Response(event.id)


Starlette(routes=[Route("/webhooks", receive, methods=["POST"]), Route("/inbox", inbox.asgi_app)])
