"""Profiles of Hypothesis (``--hypothesis-profile fuzz`` runs far more examples), databases, and Ctrl-C."""

import signal

from hypothesis import HealthCheck, settings
from support.databases import database_url, postgresql_url, sqlite_url

__all__ = ["database_url", "postgresql_url", "sqlite_url"]

settings.register_profile("quick", deadline=None, max_examples=100)
settings.register_profile("fuzz", deadline=None, max_examples=33_400, suppress_health_check=list(HealthCheck))
settings.load_profile("quick")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # If a shell runs the tests in the background, they inherit that SIGINT is ignored, and pass this on to the
    # commands that they start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
