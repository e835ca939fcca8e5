"""The base class of both programs: how help and errors are formatted, and when a command is imported."""

import importlib
import sys
from collections import UserDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, NoReturn

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

from followup.cli.exits import INTERRUPTED, USAGE, CommandFailed, run_program

_ParserError: Any = typer.BadParameter.__base__
"""The base class of every error that Typer finds in the arguments. Newer versions of Typer bring their own copy of
click, which it comes from."""


_PLACEHOLDERS = (("int", "N"), ("float", "NUMBER"), ("path", "PATH"), ("file", "PATH"))
"""What stands for a value of a type whose name contains the first text; for all others TEXT."""

_OPTIONS = "Options"

_GROUPS = {
    "Pages": ("limit", "starting_after", "ending_before", "all_pages", "all_of_them", "follow_new"),
    "Output": ("columns", "as_json"),
    "Which mock": ("url", "api_key", "token"),
    "Server": ("host", "port", "env_file", "quiet", "rate_limit"),
    "State at the start": ("snapshot", "settings", "start_time", "seed"),
    "Webhooks": ("allow_http_webhooks", "forward_to"),
    "Shell completion": ("install_completion", "show_completion"),
}
"""The groups of options, with the names of their parameters; all others are in ``Options``."""

_LAST = ("Pages", "Output", "Which mock")
"""Groups that follow those of the command itself, in this order."""


def name_values(parameters: Sequence[Any]) -> None:
    """Give each option and argument without a placeholder one that says what to type, instead of a type of Python.

    A flag gets none: Typer would write ``<bool>`` after it, as if a value had to follow.
    """
    for parameter in parameters:
        if parameter.metavar is None:
            if parameter.param_type_name == "argument":
                parameter.metavar = parameter.name.upper()
            elif getattr(parameter, "is_flag", False):
                parameter.metavar = ""
            else:
                parameter.metavar = _placeholder(parameter)


def _placeholder(parameter: Any) -> str:
    # Newer versions of Typer describe the type themselves, older ones have the type of click.
    kind = parameter.bare_type() if hasattr(parameter, "bare_type") else str(parameter.type.name)
    return next((shown for part, shown in _PLACEHOLDERS if part in kind.lower()), "TEXT")


def _usage_pieces(parameters: Sequence[Any]) -> list[str]:
    """Return what follows the name of a command in its usage line. Versions of Typer write arguments differently."""
    pieces = ["[OPTIONS]"]
    for parameter in parameters:
        if parameter.param_type_name == "argument":
            name = parameter.metavar.strip("[]")
            pieces.append(name if parameter.required else f"[{name}]")
    return pieces


def _write_options(parameters: Sequence[Any], context: Any, formatter: Any) -> None:
    """Write the arguments and the options of a command, the options in groups."""
    arguments: list[Any] = []
    groups: dict[str, list[Any]] = {}
    for parameter in parameters:
        record = parameter.get_help_record(context)
        if record is None:
            continue
        if parameter.param_type_name == "argument":
            arguments.append((parameter.metavar, record[1]))
        else:
            name = next((name for name, names in _GROUPS.items() if parameter.name in names), _OPTIONS)
            groups.setdefault(name, []).append(record)
    order = sorted(groups, key=lambda name: (name != _OPTIONS, _LAST.index(name) + 1 if name in _LAST else 0))
    for name, records in (("Arguments", arguments), *((name, groups[name]) for name in order)):
        if records:
            with formatter.section(name):
                formatter.write_dl(records)


def examples_of(command: str, examples: str) -> list[str]:
    """Return those of the examples, one a line, that begin with the command."""
    return [each for each in examples.splitlines() if f"{each} ".startswith(f"{command} ")]


def _write_examples(context: Any, formatter: Any) -> None:
    """Write the examples of a command, if its program has any."""
    program, _, command = context.command_path.partition(" ")
    if found := examples_of(command, getattr(context.find_root().command, "examples", "")):
        with formatter.section("Examples"):
            for example in found:
                formatter.write(f"{'':>{formatter.current_indent}}{program} {example}\n")


class _Described:
    def get_params(self, ctx: Any) -> list[Any]:
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        name_values(parameters)
        return parameters


class _Command(_Described, TyperCommand):
    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return _usage_pieces(self.get_params(ctx))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        _write_options(self.get_params(ctx), ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        _write_examples(ctx, formatter)
        super().format_epilog(ctx, formatter)


def _message_of(error: Any) -> str:
    """Return the text of an error of the parser, with the command whose help says more."""
    message: str = error.format_message()  # empty if the error has printed the help
    if not message or error.ctx is None:
        return message
    end = "" if message.endswith((".", "?")) else "."
    return f"{message}{end} See {error.ctx.command_path} --help."


class Deferred(NamedTuple):
    """A command, or a group of commands, that is imported when it is used.

    Attributes:
        summary: the first paragraph of its help, for the list of commands.
        module: the module that has it.
        made_by: the module's application that is the group, or that has the command; or a function that returns it,
            and takes the name and the summary.
        is_group: whether the application is the group.
    """

    summary: str
    module: str
    made_by: str = "commands"
    is_group: bool = False

    def load(self, name: str) -> Any:
        """Import and return the command or the group."""
        found = getattr(importlib.import_module(self.module), self.made_by)
        group = typer.main.get_group(found if isinstance(found, typer.Typer) else found(name, self.summary))
        command = group if self.is_group else group.commands[name]
        command.name = name
        return command


class _Commands(UserDict[str, Any]):
    """The commands of a group by name. A deferred command is loaded when it is looked up."""

    loads = True
    """Whether a deferred command is loaded; otherwise one that has only its summary stands in for it."""

    def __getitem__(self, name: str) -> Any:
        command = self.data[name]
        if isinstance(command, Deferred):
            if not self.loads:
                return TyperCommand(name, help=command.summary)
            command = self.data[name] = command.load(name)
        return command

    def summary(self, name: str) -> str:
        """Return the first paragraph of the help of a command, on one line, without loading the command."""
        command = self.data[name]
        text = command.summary if isinstance(command, Deferred) else command.help
        return " ".join((text or "").partition("\n\n")[0].split())


class _Group(_Described, TyperGroup):
    deferred: ClassVar[Mapping[str, Deferred]] = {}
    examples: ClassVar[str] = ""
    commands: _Commands

    def __init__(self, *, commands: Mapping[str, Any], **options: Any) -> None:
        super().__init__(**options)
        self.commands = _Commands({**commands, **self.deferred})

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - in the order in which they were added
        return [*self.commands]

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Return the commands and options that begin with a text, without loading the commands."""
        self.commands.loads = False
        try:
            return super().shell_complete(ctx, incomplete)
        finally:
            self.commands.loads = True

    def format_options(self, ctx: Any, formatter: Any) -> None:
        _write_options(self.get_params(ctx), ctx, formatter)
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands, each with the whole first sentence of its help; Typer would cut it at the line's end."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.commands.summary(name)) for name in self.list_commands(ctx)])


class Application(typer.Typer):
    """A program, or a group of commands.

    Help is plain text: the boxes that Typer draws with rich cut option names and defaults on a narrow terminal.

    Args:
        deferred: commands that are imported when they are used, by name. They follow the others in the list.
        examples: the examples of a program's commands, one a line, without its name. A program, unlike a group of
            commands, also has options that install and show the completion of its commands in a shell.
        options: the options of ``typer.Typer``.
    """

    def __init__(
        self,
        *,
        deferred: Mapping[str, Deferred] | None = None,
        examples: str | None = None,
        **options: Any,
    ) -> None:
        # Typer makes the group, and takes a class only.
        group = type("_Group", (_Group,), {"deferred": deferred or {}, "examples": examples or ""})
        super().__init__(
            cls=group,
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
                if type(error).__name__ == "NoArgsIsHelpError":
                    sys.stderr.write(f"{error.format_message()}\n")
                    return USAGE
                raise CommandFailed(_message_of(error), USAGE) from None

        run_program(str(self.info.name), command)
