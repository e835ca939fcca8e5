"""Which mock, and which of its organizations, a request of the control API or the dashboard acts on."""

from typing import Protocol

from flask import current_app, request

from followup_mockserver.control import Control, access_to
from followup_mockserver.gateway.auth import bearer_token
from followup_mockserver.gateway.pipeline import Gateway
from followup_mockserver.http.guard import Guard
from followup_mockserver.http.waiting import WaitingRoom

EXTENSION = "followup"
"""The app keeps its mock under this name in ``app.extensions``."""


class Served(Protocol):
    """The part of a mock that only its routes use."""

    _gateway: Gateway
    _guard: Guard
    _waiting_room: WaitingRoom


def current_gateway() -> Gateway:
    """Return the gateway of the current mock."""
    served: Served = current_app.extensions[EXTENSION]
    return served._gateway


def current_guard() -> Guard:
    """Return the guard of the current mock."""
    served: Served = current_app.extensions[EXTENSION]
    return served._guard


def current_waiting_room() -> WaitingRoom:
    """Return the waiting room of the current mock."""
    served: Served = current_app.extensions[EXTENSION]
    return served._waiting_room


def current_control() -> Control:
    """Return the test controls of the organization whose key the request carries, or of the default one.

    Raises:
        ServiceError: 401: no organization has this key.
    """
    mock: Control = current_app.extensions[EXTENSION]
    key = bearer_token({"authorization": request.headers.get("Authorization", "")})
    if key is None:
        return mock
    control = mock.organization(key)
    _ = access_to(control).tenant  # raises for an unknown key
    return control
