"""``followup demo``, which another package of the distribution has."""

import typer

from followup.cli.application import Application

commands: Application = Application()

_PASS_THROUGH = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
"""Settings of a command whose arguments another application parses."""


@commands.command(context_settings=_PASS_THROUGH)
def demo(context: typer.Context) -> None:
    """Run a complete example against a local mock; no account needed."""
    from importlib.metadata import entry_points  # takes as long to import as all else that a help page needs

    (entry_point,) = entry_points(group="followup.commands", name="demo")
    entry_point.load()(context.args)
