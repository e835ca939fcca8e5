"""A process that receives and handles webhooks, with handlers that raise by chance. Arguments: database, port."""

import logging
import random
import sys
import threading

from sqlalchemy import text
from support.webhook_events import SECRET
from waitress.server import create_server

from followup.inbox import Inbox, Received

url, port = sys.argv[1:]
logging.disable()
chance = random.Random(4)
inbox = Inbox(url, secret=SECRET, max_attempts=1000, handler_timeout=3)
WORK = text("INSERT INTO work (event_id, ref, at, stale) VALUES (:id, :ref, :at, :stale)")


@inbox.otherwise
def handle(received: Received) -> None:
    """Do the work of an event, and fail after it in one of five cases."""
    event = received.event
    at = round(event.occurred_at.timestamp())
    received.connection.execute(WORK, {"id": event.id, "ref": event.ref, "at": at, "stale": int(received.is_stale)})
    if chance.random() < 0.2:
        raise LookupError


server = create_server(inbox.wsgi_app, host="127.0.0.1", port=int(port), threads=4)
threading.Thread(target=server.run, daemon=True).start()
inbox.run()
