"""``followup-mock serve`` in a process of its own."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from followup import FollowUp
from support.shell import COMMAND_OF_MOCK, clean_environment
from support.systems import stop


class Served(NamedTuple):
    """The process, its first five lines, and the base URL and the API key in its env file."""

    process: "subprocess.Popen[str]"
    lines: list[str]
    url: str
    api_key: str

    def client(self) -> FollowUp:
        """Return a client of this mock, without retries."""
        return FollowUp(base_url=self.url, api_key=self.api_key, max_retries=0)


@contextmanager
def serving(folder: Path, *options: object, stdin: str = "", **environment: str) -> Iterator[Served]:
    """Serve with these options, and stop afterwards, which prints nothing."""
    env_file = folder / "mock.env"
    command = [*COMMAND_OF_MOCK, "serve", "--port", "0", "--env-file", str(env_file), *map(str, options)]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, encoding="utf-8", env=clean_environment() | environment
    ) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdin.write(stdin)
        process.stdin.close()
        lines = [process.stdout.readline() for _ in range(5)]
        url, key = (line.partition("=")[2] for line in env_file.read_text(encoding="utf-8").splitlines())
        yield Served(process, lines, url, key)
        stop(process)
        assert process.stderr.read() == ""
