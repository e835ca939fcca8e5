"""``followup demo``: the main job, done in one process against the mock."""

from followup_mockserver.cli.demo.command import run

__all__ = ["run"]
