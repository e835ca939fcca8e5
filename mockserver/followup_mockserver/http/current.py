"""The mock, and the test controls of the organization, that the current request acts on."""

from typing import Protocol

from flask import Flask, current_app, request

from followup_mockserver.control import Control, access_to
from followup_mockserver.gateway.auth import bearer_token
from followup_mockserver.gateway.pipeline import Gateway
from followup_mockserver.http.guard import Guard
from followup_mockserver.http.waiting import WaitingCalls

EXTENSION = "followup"
"""The key of the mock in ``app.extensions``."""


class ServedMock(Protocol):
    """The attributes of a mock that only the views use."""

    _gateway: Gateway
    _guard: Guard
    _waiting_calls: WaitingCalls


def current_gateway() -> Gateway:
    """Return the gateway of the current mock."""
    return _current_mock()._gateway


def current_guard() -> Guard:
    """Return the guard of the current mock."""
    return _current_mock()._guard


def current_waiting_calls() -> WaitingCalls:
    """Return the limit on the waiting calls of the current mock."""
    return _current_mock()._waiting_calls


def _current_mock() -> ServedMock:
    # An attribute read through the proxy ``current_app`` takes six times as long, and every call needs the mock twice.
    app: Flask = current_app._get_current_object()  # type: ignore[attr-defined]
    mock: ServedMock = app.extensions[EXTENSION]
    return mock


def current_control() -> Control:
    """Return the test controls of the organization whose API key the request carries, or of the default one.

    Raises:
        ServiceError: 401 if no organization has this key.
    """
    mock: Control = current_app.extensions[EXTENSION]
    key = bearer_token({"authorization": request.headers.get("Authorization", "")})
    if key is None:
        return mock
    control = mock.organization(key)
    _ = access_to(control).tenant  # raises for an unknown key
    return control
