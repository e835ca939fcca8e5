"""What no simulated event loop does: connect to anything outside of the simulation."""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

from followup_mockserver.lab.simulation.tasks import module_of

_WHAT_IS_SIMULATED = (
    "A simulation controls the tasks of asyncio, the clients that it made, aiosqlite, and the threads of "
    "asyncio.to_thread() and of anyio.to_thread.run_sync(), but no sockets, processes and other threads. "
    "Use SQLite in the simulation, or make the method an ordinary one that calls asyncio.run()."
)


class NotSimulated(RuntimeError):
    """The clinic uses something that a simulation cannot control."""


class UnconnectedLoop(asyncio.BaseEventLoop):
    """An event loop without sockets and processes.

    Attributes:
        refused: the first use of something that a simulation cannot control; None if there was none.
    """

    refused: NotSimulated | None = None

    def refusal(self, detail: str) -> NotSimulated:
        """Return the exception for the use of something that a simulation cannot control."""
        self.refused = self.refused or NotSimulated(f"{detail} {_WHAT_IS_SIMULATED}")
        return self.refused


def _refuse(name: str) -> Callable[..., Any]:
    def refuse(self: UnconnectedLoop, *_: Any, **__: Any) -> Any:
        caller = inspect.currentframe()
        while caller is not None and module_of(caller).startswith(("asyncio.", __name__)):
            caller = caller.f_back
        raise self.refusal(f"{module_of(caller)} called {name}() on the event loop.")

    return refuse


for _name in (
    *("add_reader", "add_writer", "add_signal_handler", "getaddrinfo", "sock_connect", "connect_read_pipe"),
    *("create_connection", "create_datagram_endpoint", "create_server", "create_unix_connection"),
    *("create_unix_server", "subprocess_exec", "subprocess_shell", "connect_write_pipe"),
):
    setattr(UnconnectedLoop, _name, _refuse(_name))
