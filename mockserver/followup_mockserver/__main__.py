"""Runs ``followup-mock`` as ``python -m followup_mockserver``."""

from followup_mockserver.cli import main

main()
