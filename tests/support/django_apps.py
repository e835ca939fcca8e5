"""Django applications of one view, for tests of receivers. They share the settings and the URLs of the process."""

from collections.abc import Callable
from typing import Any

import django
import django.urls
from django.conf import settings
from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.wsgi import WSGIHandler
from django.http import HttpResponse
from django.urls import path


def wsgi_view(view: Callable[[Any], Any]) -> Any:
    """Return a WSGI application that calls a view for each POST to /hooks."""
    return _handler(WSGIHandler, view)


def asgi_view(view: Callable[[Any], Any], *, is_async: bool = False) -> Any:
    """Return an ASGI application that calls a view, possibly a coroutine function, for each POST to /hooks."""
    return _handler(ASGIHandler, view, is_async=is_async)


def set_up() -> None:
    """Configure Django in this process: once, for all tests, whatever they need of it."""
    if not settings.configured:
        settings.configure(ALLOWED_HOSTS=["*"], SECRET_KEY="tests", ROOT_URLCONF="support.django_apps", DEBUG=False)
        django.setup()


def _handler(kind: Any, view: Callable[[Any], Any], *, is_async: bool = False) -> Any:
    set_up()
    name = f"hooks-{len(urlpatterns)}"

    async def in_the_event_loop(request: Any) -> Any:
        return await view(request)

    def in_a_thread(request: Any) -> Any:
        return view(request) or HttpResponse(status=204)

    urlpatterns.append(path(name, in_the_event_loop if is_async else in_a_thread))
    django.urls.clear_url_caches()
    handler = kind()

    def wsgi(environ: Any, start_response: Any) -> Any:
        return handler({**environ, "PATH_INFO": f"/{name}"}, start_response)

    async def asgi(scope: Any, receive: Any, send: Any) -> None:
        changed = {"path": f"/{name}", "raw_path": f"/{name}".encode()} if scope["type"] == "http" else {}
        await handler({**scope, **changed}, receive, send)

    return wsgi if kind is WSGIHandler else asgi


urlpatterns: list[Any] = []
