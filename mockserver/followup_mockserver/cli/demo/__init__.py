"""``followup demo``: a complete example in one process, against a local mock."""

from followup_mockserver.cli.demo.command import run

__all__ = ["run"]
