"""A faulty receiver of webhooks: it verifies and stores events, but fails at random and sometimes hangs.

Arguments: port, SQLite file, file with the secret, maximum number of requests that hang.
"""

import random
import sqlite3
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from followup import construct_event

LAST_BAD_ATTEMPT = 6
"""Later attempts succeed. Otherwise, one event in 20,000 would fail all nine attempts by chance."""

PORT, DATABASE, SECRET, HANGS = int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])

chance = random.Random(4)
lock = threading.Lock()
connection = sqlite3.connect(DATABASE, check_same_thread=False, isolation_level=None)
connection.execute("CREATE TABLE IF NOT EXISTS arrived (id TEXT, body BLOB, times INTEGER, PRIMARY KEY (id, body))")
connection.execute("CREATE TABLE IF NOT EXISTS hung (n INTEGER)")


class Handler(BaseHTTPRequestHandler):
    """Stores events, and responds with a random status."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Verify and store an event."""
        body = self.rfile.read(int(self.headers["content-length"]))
        event = construct_event(body, self.headers, SECRET.read_text(encoding="utf-8"))
        with lock:
            connection.execute(
                "INSERT INTO arrived VALUES (?, ?, 1) ON CONFLICT (id, body) DO UPDATE SET times = times + 1",
                (event.id, body),
            )
            hung = connection.execute("SELECT count(*) FROM hung").fetchone()[0]
            hangs = hung < HANGS and chance.random() < 0.02
            if hangs:
                connection.execute("INSERT INTO hung VALUES (1)")
        if hangs:
            threading.Event().wait(60)
        fails = int(self.headers["x-service-delivery-attempt"]) <= LAST_BAD_ATTEMPT and chance.random() < 1 / 3
        self.send_response(500 if fails else 204)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


class Server(ThreadingHTTPServer):
    """Runs each request in a thread."""

    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_: Any) -> None:
        """Ignore connections that the sender closed."""


Server(("127.0.0.1", PORT), Handler).serve_forever()
