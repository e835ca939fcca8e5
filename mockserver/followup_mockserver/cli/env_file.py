"""``serve --env-file``: a file with the base URL and the API key of the mock, for shells and CI jobs."""

from collections.abc import Mapping
from pathlib import Path

from followup_mockserver.cli.private_files import write_private_file


def write_env_file(path: Path, values: Mapping[str, str]) -> None:
    """Write ``NAME=value`` lines atomically to a file that only its owner can read.

    Args:
        path: path of the file.
        values: the values, by name.

    Raises:
        OSError: the file cannot be written, or the path is not a regular file.
    """
    write_private_file(path, "".join(f"{key}={value}\n" for key, value in values.items()))
