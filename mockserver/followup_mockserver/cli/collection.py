"""``followup-mock collection``, which writes the requests of the service for API clients."""

import json
from pathlib import Path
from typing import Annotated

import typer

from followup.cli.application import Application
from followup.cli.exits import fail
from followup.cli.lines import write_line
from followup.cli.values import STANDARD_OUTPUT
from followup_mockserver.cli.defaults import DEFAULT_URL

commands = Application()


@commands.command()
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
