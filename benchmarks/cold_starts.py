"""The time that a new process takes: to import what a webhook receiver needs, to print a help page, to serve."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from statistics import median

from measure import Figure, compare
from servers import BARE, MOCK, seconds_to_first_response

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


def help_pages() -> Iterator[Figure]:
    """Compare the help pages of both programs with that of a Typer app with one command."""
    for program, package in (("followup", "followup.cli"), ("followup-mock", "followup_mockserver.cli")):
        code = f"from {package} import main; main()"
        yield compare(
            f"{program} --help",
            lambda code=code: python("-c", code, "--help"),  # type: ignore[misc]
            "a bare Typer app, --help",
            lambda: python("-c", BARE_TYPER, "--help"),
            calls=1,
            target=1.5,
            rounds=ROUNDS,
        )


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
