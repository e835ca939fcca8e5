"""``serve --env-file``: a file that only its owner can read, whole or not there at all; or one clear line."""

import os
import socket
from pathlib import Path

import pytest
from support.systems import may_write_everywhere, needs_fifos, needs_modes

from followup.cli.output import write_private_file

LINES = "FOLLOWUP_BASE_URL=http://127.0.0.1:4210\nFOLLOWUP_API_KEY=fu_test_mock\n"


@needs_modes
@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize("is_link", [True, False])
def test_the_file_is_its_owners_alone_and_nothing_is_left_beside_it(
    tmp_path: Path, exists: bool, is_link: bool
) -> None:
    path, link = tmp_path / "mock.env", tmp_path / "link.env"
    link.symlink_to(path.name)
    if exists:
        path.write_text("OLD=1\n" * 100)
        path.chmod(0o644)
    write_private_file(link if is_link else path, LINES)
    assert link.is_symlink()
    assert path.read_text() == LINES
    assert path.stat().st_mode & 0o777 == 0o600
    assert {each.name for each in tmp_path.iterdir()} == {"mock.env", "link.env"}


@needs_fifos
def test_what_is_no_file_is_rejected_and_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fifo, link, loop, bound = (tmp_path / name for name in ("fifo", "link", "loop", "socket"))
    os.mkfifo(fifo)
    link.symlink_to(fifo)
    loop.symlink_to(loop)
    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(tmp_path)  # the path of a socket may have about 100 characters
        listener.bind(bound.name)
        for path in (fifo, link, bound, Path("/dev/null"), tmp_path, loop):
            with pytest.raises(OSError, match="it is not a regular file"):
                write_private_file(path, LINES)
    assert fifo.is_fifo()
    assert Path("/dev/null").is_char_device()


@pytest.mark.skipif(may_write_everywhere(), reason="root may write everywhere")
def test_a_file_that_may_not_be_written_stays_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "mock.env"
    path.write_text("OLD=1\n")
    path.chmod(0o400)
    with pytest.raises(PermissionError):
        write_private_file(path, LINES)
    assert path.read_text() == "OLD=1\n"
