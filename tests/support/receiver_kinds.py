"""Receivers of every kind that do one thing when they are called."""

import asyncio
from collections.abc import Callable
from typing import Any

import fastapi
import flask
import httpx

from support.django_apps import asgi_view, wsgi_view

Work = Callable[[], object]
"""What a receiver does when it is called, before it responds with 204."""


def function(work: Work) -> Any:
    """Return a function."""

    def receive(_: httpx.Request) -> httpx.Response:
        work()
        return httpx.Response(204)

    return receive


def coroutine_function(work: Work) -> Any:
    """Return a coroutine function."""

    async def receive(_: httpx.Request) -> httpx.Response:
        await asyncio.sleep(0)
        work()
        return httpx.Response(204)

    return receive


def wsgi(work: Work) -> Any:
    """Return a WSGI application without a framework."""

    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        work()
        start_response("204 No Content", [])
        return []

    return app


def asgi(work: Work) -> Any:
    """Return an ASGI application without a framework and without lifespan."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        assert scope["type"] == "http"
        work()
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    return app


def fastapi_app(work: Work) -> Any:
    """Return an application of FastAPI."""
    app = fastapi.FastAPI()

    @app.post("/hooks", status_code=204)
    async def hook() -> None:
        work()

    return app


def flask_app(work: Work, *, testing: bool = False) -> Any:
    """Return an application of Flask."""
    app = flask.Flask("clinic")
    app.testing = testing
    app.post("/hooks")(lambda: (work(), ("", 204))[1])
    return app


def django_asgi(work: Work) -> Any:
    """Return an ASGI application of Django with an asynchronous view."""

    async def view(_: Any) -> Any:
        from django.http import HttpResponse

        work()
        return HttpResponse(status=204)

    return asgi_view(view, is_async=True)


KINDS: dict[str, Callable[[Work], Any]] = {
    "function": function,
    "coroutine function": coroutine_function,
    "WSGI": wsgi,
    "ASGI": asgi,
    "FastAPI": fastapi_app,
    "Flask": flask_app,
    "Django WSGI": lambda work: wsgi_view(lambda _: work()),
    "Django ASGI": django_asgi,
}
"""Receivers of every kind."""
