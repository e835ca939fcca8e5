"""How hard hypothesis tries: ``--hypothesis-profile fuzz`` makes it try much harder. And Ctrl-C, as on a terminal."""

import signal

from hypothesis import HealthCheck, settings

settings.register_profile("quick", deadline=None, max_examples=100)
settings.register_profile("fuzz", deadline=None, max_examples=33_400, suppress_health_check=list(HealthCheck))
settings.load_profile("quick")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell that runs the tests in the background has them ignore Ctrl-C, and the commands that they start with them.
    signal.signal(signal.SIGINT, signal.default_int_handler)
