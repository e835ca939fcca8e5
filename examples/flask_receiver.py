"""A webhook receiver in Flask.

Set the environment variables CLINIC_INBOX and FOLLOWUP_WEBHOOK_SECRET, and run it with
``flask --app "flask_receiver:create_app()" run``.
"""

import os
from pathlib import Path

from flask import Flask, request
from inbox import Inbox

from followup import WebhookSignatureError, construct_event


def create_app(path: str | Path | None = None, secret: str | None = None) -> Flask:
    """Return the application; path and secret default to the environment variables."""
    app = Flask(__name__)
    inbox = Inbox(path or os.environ["CLINIC_INBOX"])
    signing_secret = secret or os.environ["FOLLOWUP_WEBHOOK_SECRET"]

    @app.post("/webhooks")
    def webhook() -> tuple[str, int]:
        try:
            # The raw body: re-serialized JSON does not match the signature.
            event = construct_event(request.get_data(), request.headers, signing_secret)
        except WebhookSignatureError as error:
            app.logger.warning("webhook rejected: %s", error)
            return "", 400
        inbox.accept(event)
        return "", 204

    return app
