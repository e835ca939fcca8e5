"""``followup demo``, which another package of the distribution has."""

import importlib
from importlib.metadata import entry_points
from typing import Any

(_entry_point,) = entry_points(group="followup.commands", name="demo")
commands: Any = importlib.import_module(_entry_point.module).commands
