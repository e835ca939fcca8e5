"""An ASGI application on a real socket."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn


@contextmanager
def served_by_uvicorn(app: Any) -> Iterator[str]:
    """Serve an application on a free port, its lifespan too, and yield its base URL."""
    with socket.create_server(("127.0.0.1", 0)) as listening:  # requests wait in it until the server has started
        server = uvicorn.Server(uvicorn.Config(app, log_level="critical"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
