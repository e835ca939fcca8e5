"""A webhook receiver in Flask that verifies, and handles each event once, whatever is delivered how often.

Run it with ``flask --app flask_receiver run`` and the variables CLINIC_DATABASE and FOLLOWUP_WEBHOOK_SECRET.
"""

import os
import sqlite3

from flask import Flask, request

from followup import WebhookEvent, WebhookSignatureError, construct_event


def create_app(database: str | None = None, secret: str | None = None) -> Flask:
    app = Flask(__name__)
    path = database or os.environ["CLINIC_DATABASE"]
    signing_secret = secret or os.environ["FOLLOWUP_WEBHOOK_SECRET"]
    with sqlite3.connect(path) as connection:
        connection.execute(
            "CREATE TABLE IF NOT EXISTS event (id TEXT PRIMARY KEY, type TEXT, occurred_at TEXT, ref TEXT)"
        )

    @app.post("/webhooks")
    def webhook() -> tuple[str, int]:
        try:
            # The raw bytes: JSON that was parsed and written again has another signature.
            event = construct_event(request.get_data(), request.headers, signing_secret)
        except WebhookSignatureError as error:
            app.logger.warning("webhook refused: %s", error)
            return "", 400
        with sqlite3.connect(path) as connection:
            if is_new(connection, event):
                handle(connection, event)
        return "", 204

    return app


def is_new(connection: sqlite3.Connection, event: WebhookEvent) -> bool:
    """Whether this event was not handled before; in one transaction with the handling."""
    row = (event.id, event.type, event.occurred_at.isoformat(), event.ref)
    return connection.execute("INSERT OR IGNORE INTO event VALUES (?, ?, ?, ?)", row).rowcount == 1


def handle(connection: sqlite3.Connection, event: WebhookEvent) -> None:
    """What the clinic does with an event; events may arrive out of order, so it looks at ``occurred_at``."""
