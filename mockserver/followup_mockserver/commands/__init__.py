"""The commands of ``followup-mock``."""

from followup_mockserver.commands.entry import run

__all__ = ["run"]
