"""What tests that run pytest within this process need of it."""

# The run within forgets the modules that it was the first to import, and the others would keep their classes.
from followup._core.http import through_httpx, transport

__all__ = ["through_httpx", "transport"]
