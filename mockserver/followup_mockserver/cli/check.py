"""``followup-mock check``, which compares a contract document with what SDK and mock implement."""

from typing import Annotated

import typer

from followup.cli.application import Application
from followup.cli.exits import FAILURE, USAGE, fail
from followup.cli.lines import json_line, write_line

commands = Application()


@commands.command(
    epilog="Exit status: 0 if SDK and mock fit the contract, 1 if it has breaking differences or the mock differs, "
    "2 if the document cannot be read, 130 if it was interrupted with Ctrl-C."
)
def check(
    source: Annotated[
        str,
        typer.Argument(
            help='URL or file of the OpenAPI document, in JSON; "-" for standard input. No API key is sent.',
            metavar="URL|FILE",
            show_default=False,
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Compare a contract document with what SDK and mock implement.

    Where a plain sample shows a difference, it is printed as a witness: JSON that only one of the two contracts
    accepts. There are four classes:

    "breaking": the service would reject a request of the SDK, or a response could hold something that the SDK does
    not decode or type.

    "mock differs": the SDK works, but the service accepts a request that the mock rejects, or its responses are not
    those of the mock.

    "added": a new operation, optional parameter or field.

    "wording": a text, or another change after which the same JSON is valid.
    """
    from followup_mockserver.cli.drift_report import lines_of
    from followup_mockserver.judge.drift.comparison import compare_document
    from followup_mockserver.judge.drift.reading import DocumentError, read_document

    try:
        report = compare_document(read_document(source))
    except DocumentError as error:
        fail(f"cannot read {source}: {error}", USAGE)
    if as_json:
        write_line(json_line(report.to_dict()))
    else:
        for line in lines_of(report):
            write_line(line)
    if not report.is_compatible:
        raise typer.Exit(FAILURE)
