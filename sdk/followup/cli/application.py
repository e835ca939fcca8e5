"""The base class of both programs: how help and errors are formatted, and when a command is imported."""

import gc
import importlib
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, NoReturn

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

from followup import __version__
from followup.cli.output import EXIT_STATUS, INTERRUPTED, USAGE, CommandFailed, fitting, run_program, warn

_ParserError: Any = typer.BadParameter.__base__
"""The base class of every error that Typer finds in the arguments. Newer versions of Typer bring their own copy of
click, which it comes from."""

_PLACEHOLDERS = (("int", "N"), ("float", "NUMBER"), ("path", "PATH"), ("file", "PATH"))
"""What stands for a value of a type whose name contains the first text; for all others TEXT."""


def name_values(parameters: Sequence[Any]) -> None:
    """Give each option and argument without a placeholder one that says what to type, instead of a type of Python.

    A flag gets none: Typer would write ``<bool>`` after it, as if a value had to follow.
    """
    for parameter in parameters:
        if parameter.metavar is not None:
            continue
        if parameter.param_type_name == "argument":
            parameter.metavar = parameter.name.upper()
        elif getattr(parameter, "is_flag", False):
            parameter.metavar = ""
        else:
            # Newer versions of Typer describe the type themselves, older ones have the type of click.
            kind = parameter.bare_type() if hasattr(parameter, "bare_type") else str(parameter.type.name)
            shown = (shown for part, shown in _PLACEHOLDERS if part in kind.lower())
            parameter.metavar = next(shown, "TEXT")


def examples_of(command: str, file: Path) -> list[str]:
    """Return those of the examples in a file, one a line, that begin with the command."""
    examples = file.read_text(encoding="utf-8").splitlines()
    return [each for each in examples if f"{each} ".startswith(f"{command} ")]


def _on_lines(command: str, formatter: Any) -> str:
    """Return an example of a help page, continued on further lines before options where it does not fit."""
    indent = " " * formatter.current_indent
    parts = re.sub(" (?!--)", "\0", command)  # a text in quotes stays whole
    lines = fitting(indent + parts, formatter.width - len(" \\"), 2 * indent)
    return " \\\n".join(lines).replace("\0", " ")


class _Described:
    def get_params(self, ctx: Any) -> list[Any]:
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        name_values(parameters)
        return parameters


class _Command(_Described, TyperCommand):
    def invoke(self, ctx: Any) -> Any:
        """Run the command, with the garbage collector, which the entry point has disabled."""
        gc.freeze()  # else the first collection visits all that the imports have left
        gc.enable()
        return super().invoke(ctx)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return what follows the name in the usage line. Versions of Typer write arguments differently."""
        arguments = [each for each in self.get_params(ctx) if each.param_type_name == "argument"]
        return ["[OPTIONS]", *(each.metavar if each.required else f"[{each.metavar}]" for each in arguments)]

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples of the command, if its program has any, and its epilog."""
        program, _, command = ctx.command_path.partition(" ")
        file = getattr(ctx.find_root().command, "examples", None)
        if file is not None and (found := examples_of(command, file)):
            with formatter.section("Examples"):
                for example in found:
                    formatter.write(_on_lines(f"{program} {example}", formatter) + "\n")
        super().format_epilog(ctx, formatter)


class Deferred(TyperCommand):
    """A command, or a group of commands, that is imported when it is used.

    Args:
        name: its name.
        summary: the first paragraph of its help, for the list of commands.
        module: the module whose ``commands`` is the application that has the command, or is the group; or a function
            that returns it, and takes the name and the summary.
    """

    def __init__(self, name: str, summary: str, module: str) -> None:
        super().__init__(name, help=summary)
        self._module = module

    def load(self) -> Any:
        """Import and return the command or the group."""
        found = importlib.import_module(self._module).commands
        group = typer.main.get_group(found if isinstance(found, typer.Typer) else found(self.name, self.help))
        command = group.commands.get(str(self.name), group)
        command.name = self.name
        return command

    def make_context(self, *args: Any, **options: Any) -> Any:
        """Return the context of the imported command."""
        return self.load().make_context(*args, **options)


class _Group(_Described, TyperGroup):
    """A group whose list has the whole first paragraph of each command's help; Typer would cut it at the line's end."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary_of(each)) for name, each in self.commands.items()])


class _Root(_Group):
    """A program, whose help fits a screen: its commands under headings, without the details of their summaries."""

    headings: ClassVar[Mapping[str, Sequence[Deferred]]] = {}
    renamed: ClassVar[Mapping[str, str]] = {}
    examples: ClassVar[Path | None] = None

    def __init__(self, *, commands: dict[str, Any], **options: Any) -> None:
        deferred: dict[str, Any] = {str(each.name): each for listed in self.headings.values() for each in listed}
        super().__init__(commands=commands | deferred, **options)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the arguments begin with; one that was renamed is found under its old name."""
        for old, new in self.renamed.items():
            if args[: len(old.split())] == old.split():
                args = [*new.split(), *args[len(old.split()) :]]
                warn(f'{ctx.info_name}: "{old}" is now "{new}"; the old name ends with the next release.')
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        self.format_commands(ctx, formatter)
        formatter.write_text(f"Options: {', '.join(each.opts[0] for each in self.get_params(ctx))}")

    def format_epilog(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        formatter.write_text(self.epilog)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        formatter.write_paragraph()
        width = max(map(len, self.commands))
        for heading, listed in self.headings.items():
            formatter.write(f"{heading}:\n")
            with formatter.indentation():
                rows = [(f"{each.name:{width}}", re.split("[.;]", summary_of(each))[0]) for each in listed]
                formatter.write_dl(rows)


def summary_of(command: Any) -> str:
    """Return the first paragraph of the help of a command."""
    return " ".join((command.help or "").partition("\n\n")[0].split())


class Application(typer.Typer):
    """A group of commands; takes the options of ``typer.Typer``.

    Help is plain text: the boxes that Typer draws with rich cut option names and defaults on a narrow terminal.
    """

    def __init__(self, **options: Any) -> None:
        defaults = {"cls": _Group, "add_completion": False, "pretty_exceptions_enable": False, "rich_markup_mode": None}
        super().__init__(**{**defaults, **options})

    def command(self, name: str | None = None, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:  # type: ignore[override]
        """Add the decorated function as a command. Takes the options of ``typer.Typer.command``."""
        return super().command(name, cls=_Command, **options)

    def run(self, arguments: Sequence[str] | None = None) -> NoReturn:
        """Run a command and exit the process with its status; an error is one line on standard error.

        Args:
            arguments: the command line; by default that of the process.
        """

        def command() -> Any:
            try:
                return self(arguments, prog_name=self.info.name, standalone_mode=False)
            except typer.Abort:  # Ctrl-C, with older versions of Typer
                return INTERRUPTED
            except _ParserError as error:
                message = re.sub(r"a valid (int|float)[a-z ]*", "a number", error.format_message())
                if type(error).__name__ == "NoArgsIsHelpError":
                    sys.stderr.write(f"{message}\n")
                    return USAGE
                if message and error.ctx is not None:  # it is empty if the error has printed the help
                    message += f"{'' if message.endswith(('.', '?')) else '.'} See {error.ctx.command_path} --help."
                raise CommandFailed(message, USAGE) from None

        run_program(str(self.info.name), command)


class Program(Application):
    """A program. It also has options that show its version, and install the completion of its commands in a shell.

    Args:
        name: its name.
        text: what its help says first.
        package: the package of the modules of its commands, which are imported when they are used.
        commands: for each heading of the help the commands: the first paragraph of the help of each, and its module.
        renamed: the commands that have another name since the last release, by their old names.
        examples: the file with the examples of its commands, one a line, without its name.
    """

    def __init__(
        self,
        name: str,
        text: str,
        package: str,
        commands: Mapping[str, Mapping[str, tuple[str, str]]],
        renamed: Mapping[str, str],
        examples: Path,
    ) -> None:
        headings = {
            heading: [Deferred(each, summary, f"{package}.{module}") for each, (summary, module) in listed.items()]
            for heading, listed in commands.items()
        }
        # Typer makes the group, and takes a class only.
        cls = type("_Root", (_Root,), {"headings": headings, "renamed": renamed, "examples": examples})
        super().__init__(name=name, cls=cls, add_completion=True, no_args_is_help=True, epilog=EXIT_STATUS)

        @self.callback(invoke_without_command=True, help=text)
        def options(
            version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
        ) -> None:
            if version:
                typer.echo(f"{name} {__version__}")
                raise typer.Exit
