"""The time that a new process takes: to import a package, to have a client ready, to print a help page, to serve."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Final

from measure import Figure, NotMeasured, compare
from servers import BARE, MOCK, cpu_seconds_of, seconds_to_first_response

from followup_mockserver import MockServer

ROUNDS = 15
ROOT = Path(__file__).parents[1]
ENVIRONMENTS = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "followup-benchmarks"

VERIFY = "from followup import verify_signature, construct_event"
READY = "a client that is ready for its first call"
STARTS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "the start of Python": ("followup", "pass"),
        "import followup": ("followup", "import followup"),
        VERIFY: ("followup", VERIFY),
        READY: (
            "followup",
            "import followup; followup.FollowUp(api_key='k', base_url='https://a.example').patients.list",
        ),
        "import hmac, hashlib, json": ("followup", "import hmac, hashlib, json"),
        "import httpx": ("httpx", "import httpx"),
        "import standardwebhooks": ("standardwebhooks", "import standardwebhooks"),
        "import stripe": ("stripe", "import stripe"),
        "stripe, a client that is ready": ("stripe", "import stripe; stripe.StripeClient('sk').v1.customers.list"),
    }
)
"""Programs, and the package with which alone each one runs."""

COMPARED = (
    (VERIFY, "import hmac, hashlib, json", 2),
    (VERIFY, "import standardwebhooks", 1),
    ("import followup", "import httpx", 0.1),
    ("import followup", "import stripe", 0.1),
    (READY, "stripe, a client that is ready", 0.9),
    (READY, "import stripe", 1),
    (READY, "import httpx", 1.5),
)
"""Pairs of programs, and the upper limit of their ratio."""

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
    """Compare the CPU time of programs, each in an environment with one package and what that requires.

    The time of Python itself is subtracted. An extra would disturb the figures: httpx, for one, imports rich and click
    where they are installed.
    """
    packages = {package for package, _ in STARTS.values()}
    pythons = {package: python_with(package) for package in packages}
    times: dict[str, list[float]] = {name: [] for name in STARTS}
    for _ in range(ROUNDS):
        for name, (package, code) in STARTS.items():
            process = subprocess.Popen([pythons[package], "-I", "-c", code])
            times[name].append(cpu_seconds_of(process) * 1e6)
            if process.returncode:
                raise NotMeasured(f"{name!r} failed")
    start = median(times["the start of Python"])
    net = {name: [max(each - start, 0.0) for each in found] for name, found in times.items()}
    for ours, theirs, target in COMPARED:
        yield Figure.of(f"{ours}, CPU", theirs, net[ours], net[theirs], target)


def python_with(package: str) -> Path:
    """Return the Python of an environment with one package alone, made by pip in a cache folder.

    Raises:
        NotMeasured: pip cannot install the package.
    """
    version = sys.version.split()[0] if package == "followup" else metadata.version(package)
    folder = ENVIRONMENTS / f"{package}-{version}"
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    installed = str(ROOT) if package == "followup" else f"{package}=={version}"
    try:
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", folder], check=True, capture_output=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", installed], check=True, capture_output=True)
    except subprocess.CalledProcessError as error:
        raise NotMeasured(f"{package} cannot be installed in {folder}") from error
    return python


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
        theirs.append(seconds_to_first_response(BARE))
        ours.append(seconds_to_first_response(MOCK))
    for position, name in enumerate(
        ("followup-mock serve, to its first response", "followup-mock serve, CPU until then")
    ):
        our_times, their_times = ([each[position] * 1e6 for each in found] for found in (ours, theirs))
        yield Figure.of(name, "a bare Flask view on the same server", our_times, their_times, 1.6)


BENCHMARKS: dict[str, Callable[[], Iterator[Figure]]] = {"import": imports, "help-pages": help_pages, "serve": serving}
