"""``python -m followup_mockserver`` is ``followup-mock``."""

from followup_mockserver.cli import main

main()
