"""A webhook receiver in FastAPI.

Set the environment variables CLINIC_INBOX and FOLLOWUP_WEBHOOK_SECRET, and run it with
``uvicorn --factory fastapi_receiver:create_app``.
"""

import logging
import os
from pathlib import Path

from fastapi import FastAPI, Request, Response
from inbox import Inbox
from starlette.concurrency import run_in_threadpool

from followup import WebhookSignatureError, construct_event

logger = logging.getLogger("clinic")


def create_app(path: str | Path | None = None, secret: str | None = None) -> FastAPI:
    """Return the application; path and secret default to the environment variables."""
    app = FastAPI()
    inbox = Inbox(path or os.environ["CLINIC_INBOX"])
    signing_secret = secret or os.environ["FOLLOWUP_WEBHOOK_SECRET"]

    @app.post("/webhooks")
    async def webhook(request: Request) -> Response:
        try:
            # The raw body: with a model as a parameter, FastAPI would parse it first.
            event = construct_event(await request.body(), request.headers, signing_secret)
        except WebhookSignatureError as error:
            logger.warning("webhook rejected: %s", error)
            return Response(status_code=400)
        await run_in_threadpool(inbox.accept, event)
        return Response(status_code=204)

    return app
