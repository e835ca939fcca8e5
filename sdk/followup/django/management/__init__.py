"""What the commands of ``manage.py`` share: their errors, and how those that work on end."""

import os
import signal
import sys
import threading
from typing import Any, ClassVar

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError
from sqlalchemy.exc import SQLAlchemyError

from followup import FollowUpError
from followup._core.threads import stop_signals
from followup._store.execution import reason_of
from followup._store.store import begin_work
from followup.django.stores import DjangoInbox, DjangoOutbox

_LONGEST_END = 8.0
"""Seconds after a signal to stop in which the call or event in flight may end."""


class FollowUpCommand(BaseCommand):
    """A command whose errors are one line, without a traceback and without personal data."""

    def run(self, *args: Any, **options: Any) -> str | None:
        """Do the work, and return what to print."""
        raise NotImplementedError

    def handle(self, *_: Any, **options: Any) -> str | None:
        """Do the work."""
        try:
            return self.run(**options) or None
        except (FollowUpError, ImproperlyConfigured, ValueError) as error:
            raise CommandError(str(error)) from None
        except SQLAlchemyError as error:
            raise CommandError(f"the database failed: {reason_of(error)}") from None


class WorkCommand(FollowUpCommand):
    """A command that works until SIGTERM or SIGINT."""

    def add_arguments(self, parser: Any) -> None:
        """Add the options."""
        parser.add_argument("--until-empty", action="store_true", help="end when no event waits or is in flight")
        parser.add_argument("--quiet", action="store_true", help="log problems only")

    store: ClassVar[DjangoOutbox | DjangoInbox]

    def work(self, stop: threading.Event, *, until_empty: bool) -> str:
        """Work until ``stop`` is set, or there is nothing to do; return what to print."""
        raise NotImplementedError

    def run(self, *, until_empty: bool, quiet: bool, **_: Any) -> str:
        """Work, and end within ten seconds of a signal."""
        stop, ended = threading.Event(), threading.Event()

        def watch() -> None:
            stop.wait()
            if not ended.wait(_LONGEST_END):
                _exit()

        def end(*_: object) -> None:
            if stop.is_set():
                _exit()
            stop.set()

        # A daemon, so that an interrupt before the try block below ends the process.
        threading.Thread(target=watch, name="followup-end", daemon=True).start()
        before = {}
        if threading.current_thread() is threading.main_thread():  # no other may do so
            before = {each: signal.signal(each, end) for each in stop_signals()}
        try:
            self.store._check_tables()
            begin_work(self.store, "with the settings of Django", quiet=quiet)
            with self.store._database.kept_open():
                return self.work(stop, until_empty=until_empty)
        finally:
            ended.set()
            stop.set()
            for number, handler in before.items():
                signal.signal(number, handler)


def _exit() -> None:
    """End the process. What is in flight stays leased, and is done again when its lease has ended."""
    for each in (sys.stdout, sys.stderr):
        each.flush()
    os._exit(0)
