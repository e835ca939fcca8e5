"""The commands of ``followup-mock``."""

from followup_mockserver.commands.app import app

__all__ = ["app"]
