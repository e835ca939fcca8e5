"""The base of the commands: an application whose help shows a type only where an option takes a value."""

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


def _without_types_of_flags(parameters: list[Any]) -> list[Any]:
    """Typer writes ``<bool>`` after a flag, as if a value had to follow it; an empty metavar shows nothing."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False) and parameter.metavar is None:
            parameter.metavar = ""
    return parameters


class _Command(TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:
        return _without_types_of_flags(super().get_params(ctx))


class _Group(TyperGroup):
    def get_params(self, ctx: Any) -> list[Any]:
        return _without_types_of_flags(super().get_params(ctx))


class Application(typer.Typer):
    """A command, or a group of commands. Takes the options of ``typer.Typer``."""

    def __init__(self, **options: Any) -> None:
        super().__init__(cls=_Group, add_completion=False, pretty_exceptions_enable=False, **options)

    def command(self, name: str | None = None, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:  # type: ignore[override]
        """Add the decorated function as a command. Takes the options of ``typer.Typer.command``."""
        return super().command(name, cls=_Command, **options)
