"""Django applications of one view, for tests of receivers."""

from collections.abc import Callable
from typing import Any

import django
from django.conf import settings
from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.wsgi import WSGIHandler
from django.http import HttpResponse
from django.urls import path


def wsgi_view(view: Callable[[Any], Any]) -> Any:
    """Return a WSGI application that calls a view for each POST to /hooks."""
    return _handler(WSGIHandler, view)


def asgi_view(view: Callable[[Any], Any]) -> Any:
    """Return an ASGI application that calls a view for each POST to /hooks."""
    return _handler(ASGIHandler, view)


def _handler(kind: Any, view: Callable[[Any], Any]) -> Any:
    if not settings.configured:
        settings.configure(ALLOWED_HOSTS=["*"], SECRET_KEY="tests", ROOT_URLCONF="support.django_apps", DEBUG=False)
        django.setup()
    number = len(_views)
    _views.append(view)

    class Handler(kind):  # type: ignore[misc]
        """Tells its view from those of other tests, which share the settings of the process."""

        def load_middleware(self, is_async: bool = False) -> None:
            super().load_middleware(is_async)
            chain = self._middleware_chain

            def choose(request: Any) -> Any:
                request.view_number = number
                return chain(request)

            self._middleware_chain = choose

    return Handler()


_views: list[Callable[[Any], Any]] = []


def _hook(request: Any) -> HttpResponse:
    return _views[request.view_number](request) or HttpResponse(status=204)


urlpatterns = [path("hooks", _hook)]
