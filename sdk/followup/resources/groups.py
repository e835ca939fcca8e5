"""The groups of operations of a client, each created on first access.

Type checkers and editors read ``groups.pyi`` instead, which ``tools/group_stubs.py`` generates from the declarations.
It has the methods of each group for either client, in a form that every editor understands.
"""

from typing import Any

from followup._core.declarations import lazy
from followup.resources import GROUPS, group_class


class _Group(lazy[Any]):
    """A group, created on first access. That of the class has no client; ``create_autospec`` reads it."""

    def __get__(self, instance: object | None, owner: type) -> Any:
        return self._compute(None) if instance is None else super().__get__(instance, owner)


def _created_on_first_access(name: str) -> _Group:
    return _Group(lambda client: group_class(name)(client))


SyncGroups = AsyncGroups = type("Groups", (), {name: _created_on_first_access(name) for name in GROUPS})
