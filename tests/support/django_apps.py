"""Django in this process: its settings, which all tests share, and applications of one view."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import django
import django.urls
import pymysql
from django.conf import settings
from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.wsgi import WSGIHandler
from django.http import HttpResponse
from django.urls import path

_MEMORY = {"ENGINE": "django.db.backends.sqlite3", "NAME": "file:followup_tests?mode=memory&cache=shared"}
_PROCESSOR = "django.contrib.{}.context_processors.{}"


def wsgi_view(view: Callable[[Any], Any]) -> Any:
    """Return a WSGI application that calls a view for each POST to /hooks."""
    return _handler(WSGIHandler, view)


def asgi_view(view: Callable[[Any], Any], *, is_async: bool = False) -> Any:
    """Return an ASGI application that calls a view, possibly a coroutine function, for each POST to /hooks."""
    return _handler(ASGIHandler, view, is_async=is_async)


def let_django_find_a_mysql_driver() -> None:
    """Let Django use PyMySQL if mysqlclient is not installed."""
    try:
        import MySQLdb  # noqa: F401 - mysqlclient
    except ImportError:
        pymysql.install_as_MySQLdb()


def set_up() -> None:
    """Configure Django in this process: once, for all tests, whatever they need of it."""
    if settings.configured:
        return
    let_django_find_a_mysql_driver()
    contrib = ("admin", "auth", "contenttypes", "messages", "sessions")
    middleware = ("sessions.middleware.Session", "auth.middleware.Authentication", "messages.middleware.Message")
    processors = [_PROCESSOR.format(each, each) for each in ("auth", "messages")]
    settings.configure(
        ALLOWED_HOSTS=["*"],
        SECRET_KEY="tests",
        ROOT_URLCONF="support.django_apps",
        DEBUG=False,
        USE_TZ=True,
        DATABASES={"default": dict(_MEMORY)},
        INSTALLED_APPS=[*(f"django.contrib.{each}" for each in contrib), "followup.django"],
        MIDDLEWARE=[f"django.contrib.{each}Middleware" for each in middleware],
        TEMPLATES=[
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "APP_DIRS": True,
                "OPTIONS": {"context_processors": ["django.template.context_processors.request", *processors]},
            }
        ],
    )
    django.setup()


@contextmanager
def using(alias: str, database: dict[str, Any], **values: Any) -> Iterator[Any]:
    """Let an alias be of a database, and ``FOLLOWUP`` name it; yield the connection of Django."""
    set_up()
    from django.db import connections
    from django.test import override_settings

    # Only here: Django 6.1 connects to all databases that are configured when it checks a project.
    databases = connections.settings
    is_new = alias not in databases
    if is_new:
        databases.update(connections.configure_settings({**databases, alias: database}))
    connection = connections[alias]
    before = dict(connection.settings_dict)
    connection.settings_dict.update(database)
    try:
        with override_settings(FOLLOWUP={"DATABASE": alias, "WEBHOOK_SECRET": "whsec_test", **values}):
            yield connection
    finally:
        connection.close()
        connection.settings_dict.clear()
        connection.settings_dict.update(before)
        if is_new:
            if connection.connection is not None:  # Django keeps one to a database in memory open
                connection.connection.close()
            del connections[alias]
            del databases[alias]


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
