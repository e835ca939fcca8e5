"""The time that a new process takes: to import what a webhook receiver needs, to print a help page, to serve."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from statistics import median

from measure import Figure, compare
from servers import BARE, MOCK, seconds_to_first_response

from followup_mockserver import MockServer

ROUNDS = 15

BARE_TYPER = """
import typer
app = typer.Typer()
@app.command()
def hello(name: str = "world") -> None:
    print(f"Hello, {name}")
app()
"""


def python(*arguments: str) -> None:
    """Run Python, and discard the output."""
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)


def imports() -> Iterator[Figure]:
    """Compare imports with those of what they need, without the time that Python itself takes to start."""
    for code, alternative, target in (
        ("from followup import verify_signature, construct_event", "import hmac, hashlib, json", 2),
        ("from followup import FollowUp", "import httpx", 1.45),
    ):
        yield _without_interpreter(f"{code}, without the start of Python", code, alternative, target)


def _without_interpreter(name: str, code: str, alternative: str, target: float) -> Figure:
    interpreter = "pass"
    times: dict[str, list[float]] = {interpreter: [], alternative: [], code: []}
    for _ in range(ROUNDS):
        for each in times:
            started = time.perf_counter()
            python("-c", each)
            times[each].append((time.perf_counter() - started) * 1e6)
    start = median(times[interpreter])
    ours, theirs = ([each - start for each in times[side]] for side in (code, alternative))
    return Figure.of(name, alternative, ours, theirs, target)


PROGRAMS = {"followup": "followup.cli", "followup-mock": "followup_mockserver.cli"}
PAGES = (
    *("followup --help", "followup events send-all --help", "followup outbox run --help", "followup demo --help"),
    *(
        "followup-mock --help",
        "followup-mock serve --help",
        "followup-mock dev --help",
        "followup-mock requests --help",
    ),
)
"""The page of each program, and those whose modules import the most."""

REQUEST = """
import httpx, sys
httpx.get(f"{sys.argv[1]}/v1/patients", headers={"Authorization": f"Bearer {sys.argv[2]}"}, trust_env=False)
"""


def program(words: str) -> list[str]:
    """Return the arguments of Python that run a command of one of our programs."""
    name, *arguments = words.split()
    return ["-c", f"from {PROGRAMS[name]} import main; main()", *arguments]


def cpu_of_processes() -> float:
    """Return the CPU seconds of the processes that have ended."""
    return sum(os.times()[2:4])


def help_pages() -> Iterator[Figure]:
    """Compare the CPU time of commands with that of a Typer app with one command."""
    for page in PAGES:
        yield compare(
            f"{page}, CPU",
            lambda page=page: python(*program(page)),  # type: ignore[misc]
            "a bare Typer app, --help",
            lambda: python("-c", BARE_TYPER, "--help"),
            calls=1,
            target=1.5,
            rounds=ROUNDS,
            clock=cpu_of_processes,
        )
    with MockServer(rate_limit=0) as server:
        os.environ.update(FOLLOWUP_BASE_URL=server.url, FOLLOWUP_API_KEY=server.api_key)
        commands = {
            "list": program("followup patients list"),
            "request": ["-c", REQUEST, server.url, server.api_key],
            "python": ["-c", "pass"],
            "typer": ["-c", BARE_TYPER, "--help"],
        }
        times: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(ROUNDS):
            for name, arguments in commands.items():
                began = cpu_of_processes()
                python(*arguments)
                times[name].append((cpu_of_processes() - began) * 1e6)
    ours = [a - b + c for a, b, c in zip(times["list"], times["request"], times["python"], strict=True)]
    name = "followup patients list, less its request, CPU"
    yield Figure.of(name, "a bare Typer app, --help", ours, times["typer"], 1.5)


def serving() -> Iterator[Figure]:
    """Compare the start of the mock, until its first response, with that of a bare Flask view."""
    ours, theirs = [], []
    for _ in range(ROUNDS):
        theirs.append(seconds_to_first_response(BARE) * 1e6)
        ours.append(seconds_to_first_response(MOCK) * 1e6)
    name, alternative = "followup-mock serve, to its first response", "a bare Flask view on the same server"
    yield Figure.of(name, alternative, ours, theirs, 1.8)


BENCHMARKS: dict[str, Callable[[], Iterator[Figure]]] = {
    "import": imports,
    "help-pages": help_pages,
    "serve": serving,
}
