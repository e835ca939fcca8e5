"""The commands that write and read files: ``snapshot`` with the state of a running mock, and ``collection``."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from followup.cli.application import Application
from followup.cli.exits import EXIT_STATUS, fail
from followup.cli.output import json_line, write_line, write_private_file
from followup.cli.values import STANDARD_INPUT, STANDARD_OUTPUT
from followup_mockserver.cli.generated import Key, Token, Url
from followup_mockserver.cli.remote import DEFAULT_URL, Remote
from followup_mockserver.state.snapshots.codecs import SnapshotError
from followup_mockserver.state.snapshots.document import MAX_BYTES, content_of

SUMMARY = "Save the state of the mock to a file, or load it from one."

snapshots = Application(name="snapshot", no_args_is_help=True, help=SUMMARY, epilog=EXIT_STATUS)
collections = Application()

_FILE = typer.Argument(help="File of the snapshot; - writes to standard output.", metavar="FILE", show_default=False)

_LOADED = typer.Argument(help="File of the snapshot; - reads standard input.", metavar="FILE", show_default=False)


@snapshots.command()
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
    try:
        write_private_file(file, text)
    except OSError as error:
        fail(f"cannot write {file}: {error.strerror}")


@snapshots.command()
def load(file: Annotated[Path, _LOADED], url: Url = DEFAULT_URL, api_key: Key = None, token: Token = None) -> None:
    """Replace the state by that in a file: of the organization of the API key, or without a key of the whole mock.

    The organization of the key takes a snapshot of one organization, and keeps its own id and API keys, unless the
    snapshot was saved from it.
    """
    try:
        text = sys.stdin.buffer.read() if str(file) == STANDARD_INPUT else content_of(file)
    except OSError as error:
        fail(f"cannot read {file}: {error.strerror}")
    except SnapshotError as error:
        fail(f"cannot load {file}: {error}")
    if len(text) > MAX_BYTES:
        fail(f"cannot load {file}: a snapshot has at most {MAX_BYTES} bytes")
    Remote(url, api_key, token).load_snapshot(text)


@collections.command()
def collection(
    output: Annotated[
        Path, typer.Option(help="File to write to; standard output if omitted.", show_default=False)
    ] = Path(STANDARD_OUTPUT),
    url: Annotated[str, typer.Option(help="Base URL in the collection; a variable in it.")] = DEFAULT_URL,
) -> None:
    """Write all requests as a collection for Bruno, Postman, Insomnia or Hoppscotch.

    It has the operations of the service and the control API of the mock, with example bodies, and needs no running
    mock. The API key in it is that of the mock, never yours.
    """
    from followup_mockserver.contract.collection import collection as collection_of
    from followup_mockserver.contract.openapi import document
    from followup_mockserver.http.control_openapi import control_document
    from followup_mockserver.state.registry import DEFAULT_KEY

    made = collection_of(document(), control_document(), base_url=url, api_key=DEFAULT_KEY)
    is_file = str(output) != STANDARD_OUTPUT
    lines = json.dumps(made, ensure_ascii=not is_file, indent=2).splitlines()  # a terminal may not be UTF-8
    if not is_file:
        for line in lines:
            write_line(line)
        return
    try:
        output.write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as error:
        fail(f"cannot write {output}: {error.strerror}")
