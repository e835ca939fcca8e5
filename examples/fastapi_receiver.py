"""A webhook receiver in FastAPI, which stores events for ``clinic_inbox.py``.

Set the environment variables FOLLOWUP_DATABASE_URL and FOLLOWUP_WEBHOOK_SECRET, and run it with
``uvicorn --factory fastapi_receiver:create_app``.
"""

from clinic_inbox import create_inbox
from fastapi import FastAPI

from followup.fastapi import inbox_router


def create_app(database: str | None = None, secret: str | None = None) -> FastAPI:
    """Return the application; database and secret default to the environment variables."""
    app = FastAPI()
    app.include_router(inbox_router(create_inbox(database, secret), "/webhooks"))
    return app
