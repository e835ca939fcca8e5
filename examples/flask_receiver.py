"""A webhook receiver in Flask, which stores events for ``clinic_inbox.py``.

Set the environment variables FOLLOWUP_DATABASE_URL and FOLLOWUP_WEBHOOK_SECRET, and run it with
``flask --app "flask_receiver:create_app()" run``.
"""

from clinic_inbox import create_inbox
from flask import Flask
from werkzeug.middleware.dispatcher import DispatcherMiddleware


def create_app(database: str | None = None, secret: str | None = None) -> Flask:
    """Return the application; database and secret default to the environment variables."""
    app = Flask(__name__)
    inbox = create_inbox(database, secret)
    app.wsgi_app = DispatcherMiddleware(  # type: ignore[method-assign]
        app.wsgi_app, {"/webhooks": inbox.wsgi_app}
    )
    return app
