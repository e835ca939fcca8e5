"""The Django project of a test: its client, outbox and inbox reach a mock, whose webhooks reach its URLs."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler
from django.test import override_settings
from django.urls import get_resolver

from followup import FollowUp, WebhookEndpoint
from followup.django import client, inbox, outbox, webhook
from followup_mockserver.service import MockService

_SERVER = "https://testserver"
"""The host that Django lets tests use."""

_MOST_ROUNDS = 50


class DjangoProject:
    """What the fixture ``followup_django`` returns.

    Attributes:
        service: the mock, the same as ``followup_service``.
        client: the client of the project.
        url: URL of the view ``followup.django.webhook``; None if the project does not have it.
    """

    def __init__(self, service: MockService) -> None:
        self.service = service
        self.client: FollowUp = client
        self.url: str | None = next((f"{_SERVER}{each}" for each in _paths(get_resolver())), None)
        self._endpoint: WebhookEndpoint | None = None

    def settle(self) -> None:
        """Send the events of the outbox, deliver what is due now, and handle the webhooks, until nothing changes.

        The clock of the mock stays as it is: ``service.advance(hours=...)`` moves it.

        Raises:
            Exception: whatever a handler or a view raises.
            RuntimeError: something still changes after 50 rounds.
        """
        self._give_way()
        for _ in range(_MOST_ROUNDS):
            # Events first, whose webhooks then are due, and are stored before their handlers run.
            sent = outbox.drain(client)
            ran = self.service.advance().ran
            handled = inbox.drain(raise_exceptions=True)
            if not any((sent.sent, sent.duplicates, sent.rejected, ran, handled.done, handled.dead, handled.unhandled)):
                return
        raise RuntimeError(f"the project does not settle: after {_MOST_ROUNDS} rounds, something still changes")

    @contextmanager
    def _connected(self) -> Iterator[None]:
        """Let the project reach the mock, and the mock the project, until the with block ends."""
        with self.service.client() as own:
            client._stand_for(own)
            try:
                self.service.mount(_SERVER, WSGIHandler())
                with override_settings(**self._settings(own)):
                    yield
            finally:
                client._stand_for(None)

    def _settings(self, own: FollowUp) -> dict[str, Any]:
        """Return the changed settings, with the secret of an endpoint that is registered unless there is one."""
        if self.url is None or own.webhook_endpoints.list(limit=1).data:
            return {}
        self._endpoint = own.webhook_endpoints.create(url=self.url, enabled_events=["*"])
        return {"FOLLOWUP": {**getattr(settings, "FOLLOWUP", {}), "WEBHOOK_SECRET": self._endpoint.secret}}

    def _give_way(self) -> None:
        """Remove our endpoint if the test has registered one of its own: each event would come twice."""
        if self._endpoint is not None and len(client.webhook_endpoints.list(limit=2).data) > 1:
            client.webhook_endpoints.delete(self._endpoint.id)
            self._endpoint = None


def _paths(resolver: Any, before: str = "/") -> Iterator[str]:
    """Yield the paths of our view, also in an ``include`` with a namespace, in which ``reverse`` does not find it."""
    for each in resolver.url_patterns:
        path = before + str(each.pattern).lstrip("^")
        if hasattr(each, "url_patterns"):
            yield from _paths(each, path)
        elif each.callback is webhook:
            yield path.removesuffix("$").removesuffix("\\Z")
