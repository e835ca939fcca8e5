"""The base class of both programs: how help and errors are formatted, and when a command is imported."""

import importlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

from followup.cli.output import INTERRUPTED, USAGE, CommandFailed, run_program

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


class _Described:
    def get_params(self, ctx: Any) -> list[Any]:
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        name_values(parameters)
        return parameters


class _Command(_Described, TyperCommand):
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
                    formatter.write(f"{'':>{formatter.current_indent}}{program} {example}\n")
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
    deferred: ClassVar[Sequence[Deferred]] = ()
    examples: ClassVar[Path | None] = None

    def __init__(self, *, commands: dict[str, Any], **options: Any) -> None:
        deferred: dict[str, Any] = {str(each.name): each for each in self.deferred}
        super().__init__(commands=commands | deferred, **options)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        """List the commands, each with the whole first paragraph of its help; Typer would cut it at the line's end."""
        summaries = {name: (each.help or "").partition("\n\n")[0] for name, each in self.commands.items()}
        with formatter.section("Commands"):
            formatter.write_dl([(name, " ".join(text.split())) for name, text in summaries.items()])


class Application(typer.Typer):
    """A program, or a group of commands.

    Help is plain text: the boxes that Typer draws with rich cut option names and defaults on a narrow terminal.

    Args:
        deferred: commands that are imported when they are used. They follow the others in the list.
        examples: file with the examples of a program's commands, one a line, without its name. A program, unlike a
            group of commands, also has options that install and show the completion of its commands in a shell.
        options: the options of ``typer.Typer``.
    """

    def __init__(self, *, deferred: Sequence[Deferred] = (), examples: Path | None = None, **options: Any) -> None:
        super().__init__(
            # Typer makes the group, and takes a class only.
            cls=type("_Group", (_Group,), {"deferred": deferred, "examples": examples}),
            add_completion=examples is not None,
            pretty_exceptions_enable=False,
            rich_markup_mode=None,
            **options,
        )

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
                message = error.format_message()
                if type(error).__name__ == "NoArgsIsHelpError":
                    sys.stderr.write(f"{message}\n")
                    return USAGE
                if message and error.ctx is not None:  # it is empty if the error has printed the help
                    message += f"{'' if message.endswith(('.', '?')) else '.'} See {error.ctx.command_path} --help."
                raise CommandFailed(message, USAGE) from None

        run_program(str(self.info.name), command)
