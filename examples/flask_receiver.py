"""A webhook receiver in Flask.

Run it with ``flask --app "flask_receiver:create_app()" run`` and the variables CLINIC_INBOX and
FOLLOWUP_WEBHOOK_SECRET.
"""

import os
from pathlib import Path

from flask import Flask, request
from inbox import Inbox

from followup import WebhookSignatureError, construct_event


def create_app(path: str | Path | None = None, secret: str | None = None) -> Flask:
    app = Flask(__name__)
    inbox = Inbox(path or os.environ["CLINIC_INBOX"])
    signing_secret = secret or os.environ["FOLLOWUP_WEBHOOK_SECRET"]

    @app.post("/webhooks")
    def webhook() -> tuple[str, int]:
        try:
            # The raw bytes: JSON that was parsed and written again has another signature.
            event = construct_event(request.get_data(), request.headers, signing_secret)
        except WebhookSignatureError as error:
            app.logger.warning("webhook refused: %s", error)
            return "", 400
        inbox.accept(event)
        return "", 204

    return app
