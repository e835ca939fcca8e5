"""Objects that the settings of Django describe, the client among them.

They are made at their first use, and anew when the settings change.
"""

import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connections

from followup import ConfigurationError, FollowUp

SETTINGS = ("DATABASE", "NAME", "WEBHOOK_SECRET", "API_KEY", "BASE_URL", "CIPHER")
"""The keys of the setting ``FOLLOWUP``."""

_MISSING = re.compile(r"pass \w+=\.\.\., or set (.*FOLLOWUP_(\w+))")
_ADVICE = re.compile(r"call \w+\.create_tables\(\) once.*?ddl\([^)]*\)")


def setting(key: str) -> Any:
    """Return a value of the setting ``FOLLOWUP``; None if it is not set.

    Raises:
        ImproperlyConfigured: ``FOLLOWUP`` is no dict, or the app is not installed.
    """
    if not apps.is_installed("followup.django"):
        raise ImproperlyConfigured('INSTALLED_APPS must contain "followup.django"')
    values = getattr(settings, "FOLLOWUP", {})
    if not isinstance(values, Mapping):
        raise ImproperlyConfigured(f"FOLLOWUP must be a dict, not {type(values).__name__}")
    return values.get(key)


def database_alias() -> str:
    """Return the alias of the database of outbox and inbox.

    Raises:
        ImproperlyConfigured: ``DATABASES`` has no such alias.
    """
    alias = setting("DATABASE") or "default"
    if alias not in [*connections]:
        raise ImproperlyConfigured(
            f"FOLLOWUP['DATABASE'] must be one of the aliases in DATABASES, {', '.join(connections)}, not {alias!r}"
        )
    return str(alias)


@contextmanager
def improperly_configured() -> Iterator[None]:
    """Turn what is wrong with an argument that is a setting into Django's own error."""
    try:
        yield
    except (ConfigurationError, ImportError, TypeError, ValueError) as error:
        raise ImproperlyConfigured("FOLLOWUP: " + _MISSING.sub(r"set FOLLOWUP['\2'], or \1", str(error))) from None


@contextmanager
def migrations_advised() -> Iterator[None]:
    """Let an error about missing tables name ``migrate``, which makes them in a Django project."""
    try:
        yield
    except ConfigurationError as error:
        raise ConfigurationError(_ADVICE.sub("run manage.py migrate followup_django", str(error))) from None


class Late:
    """Finds what it lacks in an object that is made at the first use.

    A subclass also inherits from the class of that object, whose methods then run on this one. It is made anew whenever
    ``_described`` returns something else than before.
    """

    def __init__(self) -> None:
        self.__dict__["_made"] = None
        self.__dict__["_lock"] = threading.RLock()

    def _described(self) -> object:
        """Return what the object is made of."""
        raise NotImplementedError

    def _make(self) -> Any:
        """Make the object."""
        raise NotImplementedError

    def _current(self) -> Any:
        described = self._described()
        made = self.__dict__["_made"]
        if made is None or made[0] != described:
            with self.__dict__["_lock"], improperly_configured():
                made = self.__dict__["_made"]
                if made is None or made[0] != described:  # no other thread has made it meanwhile
                    made = self.__dict__["_made"] = (described, self._make())
        return made[1]

    if not TYPE_CHECKING:  # for which a misspelt name is an error

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):  # of copy, pickle and others, which ask every object
                raise AttributeError(name)
            return getattr(self._current(), name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of the settings>"


class DjangoFollowUp(Late, FollowUp):
    """A ``FollowUp`` with the key and the URL of ``FOLLOWUP``, else of the environment. Threads may share it."""

    def __init__(self) -> None:
        super().__init__()
        self.__dict__["_stand_in"] = None

    def _stand_for(self, client: FollowUp | None) -> None:
        """Be this client, in a test, whatever the settings are; with None, that of the settings again."""
        self.__dict__["_stand_in"] = client

    def _described(self) -> object:
        variables = (os.environ.get(each) for each in ("FOLLOWUP_API_KEY", "FOLLOWUP_BASE_URL"))
        return self.__dict__["_stand_in"], setting("API_KEY"), setting("BASE_URL"), *variables

    def _make(self) -> Any:
        self.close()  # that of before
        return self.__dict__["_stand_in"] or FollowUp(api_key=setting("API_KEY"), base_url=setting("BASE_URL"))

    def close(self) -> None:
        """Close the connections. The next call opens others."""
        made, self.__dict__["_made"] = self.__dict__["_made"], None
        if made is not None:
            made[1].close()
