"""What ``manage.py check`` says about the settings, and with ``--database`` about the tables."""

import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning  # noqa: A004 - as Django calls it
from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.utils.module_loading import autodiscover_modules

from followup import ConfigurationError, FollowUp
from followup.django import inbox, outbox
from followup.django.from_settings import SETTINGS, database_alias, improperly_configured, setting
from followup.django.models import missing_tables
from followup.webhooks import SECRET_VARIABLE


def check_settings(**_: object) -> list[CheckMessage]:
    """Check the setting ``FOLLOWUP``, without a connection, and import the handlers."""
    found = [*_problems()]
    if not found:
        autodiscover_modules("followup_handlers")
        if not inbox._handlers._by_type:
            hint = "Put functions with @inbox.on(...) into a module followup_handlers of an installed app."
            found.append(Warning("No webhook has a handler.", hint=hint, id="followup.W002"))
    return found


def _problems() -> Iterator[CheckMessage]:
    try:
        unknown = sorted(map(str, {*(getattr(settings, "FOLLOWUP", {}))} - {*SETTINGS}))
        for each in unknown:
            yield Error(
                f"FOLLOWUP has no key {each!r}.", hint=f"Its keys are {', '.join(SETTINGS)}.", id="followup.E001"
            )
        for store in (outbox, inbox):
            store._current()
        with improperly_configured():
            FollowUp(
                api_key=setting("API_KEY") or "none", base_url=setting("BASE_URL") or "https://none.invalid"
            ).close()
    except ImproperlyConfigured as error:
        yield Error(str(error), id="followup.E002")
        return
    if not setting("WEBHOOK_SECRET") and not os.environ.get(SECRET_VARIABLE):
        hint = f"Set FOLLOWUP['WEBHOOK_SECRET'] or {SECRET_VARIABLE} to the secret of your webhook endpoint."
        yield Warning("There is no secret, so that no webhook can be verified.", hint=hint, id="followup.W001")


def check_tables(databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """Check that a database has the tables, if it is that of ``FOLLOWUP`` and among those to be checked."""
    if sys.argv[1:2] == ["migrate"]:  # it checks too, before it makes them
        return []
    try:
        alias = database_alias()
        if alias not in (databases or ()):
            return []
        missing = missing_tables(connections[alias])
    except ImproperlyConfigured:
        return []  # which the other check has said
    except ConfigurationError as error:
        return [Error(str(error), id="followup.E003")]
    text = f"The database {alias!r} lacks tables of followup, or has those of an earlier release."
    return [Error(text, hint="Run manage.py migrate.", id="followup.E003")] if missing else []
