"""The commands ``snapshot save`` and ``snapshot load``: the state of a running mock in a file."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from followup.cli.application import Application
from followup.cli.exits import fail, file_errors
from followup.cli.output import json_line, write_line, write_private_file
from followup.cli.values import STANDARD_INPUT, STANDARD_OUTPUT
from followup_mockserver.cli.generated import Key, Token, Url
from followup_mockserver.cli.remote import DEFAULT_URL, Remote
from followup_mockserver.state.snapshots.codecs import SnapshotError
from followup_mockserver.state.snapshots.document import MAX_BYTES, content_of

commands = Application(no_args_is_help=True, help="Save the state of the mock to a file, or load it from one.")

_FILE = typer.Argument(help="File of the snapshot; - writes to standard output.", metavar="FILE", show_default=False)

_LOADED = typer.Argument(help="File of the snapshot; - reads standard input.", metavar="FILE", show_default=False)


@commands.command()
def save(file: Annotated[Path, _FILE], url: Url = DEFAULT_URL, api_key: Key = None, token: Token = None) -> None:
    """Save the state to a file: of the organization of the API key, or without a key of the whole mock.

    The file contains personal data, API keys and signing secrets; only its owner can read it.
    """
    saved = Remote(url, api_key, token).save_snapshot()
    text = json.dumps(saved, ensure_ascii=False)
    if len(text.encode()) > MAX_BYTES:
        fail(f"the snapshot has more than {MAX_BYTES} bytes, and no mock could load it")
    if str(file) == STANDARD_OUTPUT:
        write_line(json_line(saved))
        return
    with file_errors(f"write {file}"):
        write_private_file(file, text)


@commands.command()
def load(file: Annotated[Path, _LOADED], url: Url = DEFAULT_URL, api_key: Key = None, token: Token = None) -> None:
    """Replace the state by that in a file: of the organization of the API key, or without a key of the whole mock.

    The organization of the key takes a snapshot of one organization, and keeps its own id and API keys, unless the
    snapshot was saved from it.
    """
    try:
        with file_errors(f"read {file}"):
            text = sys.stdin.buffer.read() if str(file) == STANDARD_INPUT else content_of(file)
    except SnapshotError as error:
        fail(f"cannot load {file}: {error}")
    if len(text) > MAX_BYTES:
        fail(f"cannot load {file}: a snapshot has at most {MAX_BYTES} bytes")
    Remote(url, api_key, token).load_snapshot(text)
