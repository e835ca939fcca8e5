"""The groups of operations, a module each, imported when one of them is first used: making their classes takes time."""

from importlib import import_module
from types import ModuleType
from typing import Any

from followup._declarations import Resource

GROUP_NAMES = (
    "account",
    "patients",
    "doctors",
    "appointments",
    "visits",
    "intake_requests",
    "treatments",
    "events",
    "webhook_endpoints",
    "webhook_deliveries",
)
"""In the order of the specification; the names of the modules, and of the attributes of the clients."""


def group_module(name: str) -> ModuleType:
    """The module of a group: its result classes, its input dicts and its operations."""
    return import_module(f"{__name__}.{name}")


def group_class(name: str) -> type[Resource[Any]]:
    """The class whose methods are the operations of a group."""
    return next(
        value
        for value in vars(group_module(name)).values()
        if isinstance(value, type) and issubclass(value, Resource) and getattr(value, "group", None) == name
    )


def all_groups() -> list[type[Resource[Any]]]:
    """The classes of all groups."""
    return [group_class(name) for name in GROUP_NAMES]
