"""The programs: their commands are imported when they are used, and their help and errors are those of Typer."""

import importlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

from followup import __version__
from followup.cli.output import EXIT_STATUS, run_program


class Application(typer.Typer):
    """A group of commands; takes the options of ``typer.Typer``.

    Help is plain text, because rich, which draws Typer's boxes, takes longer to import than all the rest.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None, **options)


class Deferred(TyperCommand):
    """A command, or a group of commands, that is imported when it is used.

    Args:
        name: its name.
        summary: the first paragraph of its help. The docstring of the command has the others.
        heading: the heading under which the help of the program lists it.
        module: the module whose ``commands`` is the application that has the command, or is the group; or a function
            that takes the name and returns the application.
        examples: the examples of the program.
    """

    def __init__(self, name: str, summary: str, heading: str, module: str, examples: Sequence[str]) -> None:
        super().__init__(name, help=summary, rich_markup_mode=None)
        self.heading = heading
        self._module = module
        self._examples = examples

    def load(self) -> Any:
        """Import and return the command or the group."""
        found = importlib.import_module(self._module).commands
        group = typer.main.get_group(found if isinstance(found, typer.Typer) else found(self.name))
        command = group.commands.get(str(self.name), group)
        command.name = self.name
        # The summary stands in COMMANDS, because the list of commands imports none of them.
        command.help = "\n\n".join(filter(None, (self.help, command.help)))
        for words, each in _single_commands(str(self.name), command):
            if found := examples_of(words, self._examples):
                shown = "\n  ".join(["\b\nExamples:", *found])  # \b: lines that the formatter keeps
                each.epilog = "\n\n".join(filter(None, (shown, each.epilog)))
        return command

    def make_context(self, *args: Any, **options: Any) -> Any:
        """Return the context of the imported command."""
        return self.load().make_context(*args, **options)


def _single_commands(words: str, command: Any) -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "commands"):
        yield words, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from _single_commands(f"{words} {name}", inner)


def examples_of(words: str, examples: Sequence[str]) -> list[str]:
    """Return those of the examples that begin with a command, which is named without its program."""
    return [each for each in examples if f"{each} ".partition(" ")[2].startswith(f"{words} ")]


class Program(TyperGroup):
    """A program, whose help lists its commands under headings."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        """Write the commands with their summaries. Only the boxes of rich have headings in Typer."""
        for heading, listed in groupby(self.commands.values(), key=lambda each: getattr(each, "heading", "")):
            with formatter.section(heading):
                formatter.write_dl([(each.name, each.help) for each in listed])

    def run(self, arguments: Sequence[str] | None = None) -> NoReturn:
        """Run a command and exit the process with its status.

        Args:
            arguments: the command line; by default that of the process.
        """
        # On Windows, click would replace a * by the names of files, and %NAME% in a URL by a variable.
        run_program(str(self.name), lambda: self(arguments, prog_name=self.name, windows_expand_args=False))


def program(
    name: str, text: str, package: str, commands: Mapping[str, Mapping[str, tuple[str, str]]], examples: Path
) -> Program:
    """Return a program. It can also show its version, and install the completion of its commands in a shell.

    Args:
        name: its name.
        text: what its help says first.
        package: the package of the modules of its commands.
        commands: for each heading of the help the commands: the summary of each, and its module.
        examples: the file with the examples of its commands, one a line.
    """
    settings: Any = {"cls": Program, "pretty_exceptions_enable": False, "rich_markup_mode": None}
    application = typer.Typer(name=name, no_args_is_help=True, epilog=EXIT_STATUS, **settings)

    @application.callback(invoke_without_command=True, help=text)
    def options(version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False) -> None:
        if version:
            typer.echo(f"{name} {__version__}")
            raise typer.Exit

    root: Any = typer.main.get_command(application)
    lines = examples.read_text(encoding="utf-8").splitlines()
    for heading, listed in commands.items():
        for each, (summary, module) in listed.items():
            path = module if "." in module else f"{package}.{module}"  # the demo is in the package of the mock
            root.add_command(Deferred(each, summary, heading, path, lines))
    found: Program = root
    return found
