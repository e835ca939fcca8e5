"""The groups of operations of a client, each created on first access.

Type checkers and editors read ``groups.pyi`` instead, which ``tools/group_stubs.py`` generates from the declarations.
It has the methods of each group for either client, in a form that every editor understands.
"""

from typing import Any

from followup._core.declarations import lazy
from followup._core.operations import group_name
from followup.resources import all_groups


class _Group(lazy[Any]):
    """A group, created on first access. That of the class has no client; ``create_autospec`` reads it."""

    def __get__(self, instance: object | None, owner: type) -> Any:
        return self._compute(None) if instance is None else super().__get__(instance, owner)


# One class, because the groups ask their client how to perform; only type checkers need two.
SyncGroups = AsyncGroups = type("Groups", (), {group_name(each): _Group(each) for each in all_groups()})
