"""Every operation of the service as a command, made from the operations' declarations."""

import inspect
import itertools
import json
import sys
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from rich.progress import SpinnerColumn, TextColumn

from followup._codec.names import bare, is_union
from followup._declarations import Declaration, Parameter
from followup._operations import NotGiven, declarations_of, group_name
from followup.cli.application import Application
from followup.cli.clearing import clear_option, cleared
from followup.cli.help_texts import for_the_command_line, sentence
from followup.cli.output import fail, progress, remark, show_many, show_one
from followup.cli.sending import send
from followup.cli.session import check_set_up, connected
from followup.resources import all_groups
from followup.resources.account import AccountGroup
from followup.resources.event_batches import EventBatch
from followup.resources.events import Events

CONTROL = ("idempotency_key", "as_json", "all_pages", "clear")
"""Arguments of a command that are no parameters of its operation."""


def add_operations(app: Application) -> None:
    """Add a group of commands for each group of operations, and what else belongs to one."""
    for group in all_groups():
        commands = Application(help=inspect.getdoc(group), no_args_is_help=group is not AccountGroup)
        for declaration in declarations_of(group).values():
            text = for_the_command_line(declaration.description)
            commands.command(_kebab(declaration.method_name), help=text)(_command(declaration))
        if group is Events:
            commands.command("send")(send)
        if group is AccountGroup:
            commands.callback(invoke_without_command=True)(check_set_up)
        app.add_typer(commands, name=_kebab(group_name(group)))


def _command(declaration: Declaration) -> Callable[..., None]:
    def run(**given: Any) -> None:
        control = {name: given.pop(name, None) for name in CONTROL}
        path = [given.pop(each.name) for each in declaration.parameters if each.place == "path"]
        arguments = {
            parameter.name: _value(parameter, given[parameter.name])
            for parameter in declaration.parameters
            if given.get(parameter.name) not in (None, [])
        }
        if control["idempotency_key"] is not None:
            arguments["idempotency_key"] = control["idempotency_key"]
        arguments |= cleared(declaration, control["clear"] or (), arguments)
        with connected() as client:
            group, method = declaration.name.split(".")
            result = getattr(getattr(client, group), method)(*path, **arguments)
            _show(result, declaration, as_json=bool(control["as_json"]), all_pages=bool(control["all_pages"]))

    run.__signature__ = inspect.Signature(_arguments(declaration))  # type: ignore[attr-defined]
    return run


def _show(result: Any, declaration: Declaration, *, as_json: bool, all_pages: bool) -> None:
    if isinstance(result, EventBatch):
        show_many(result.results, as_json=as_json)
    elif declaration.item_type is None:
        show_one(result, as_json=as_json)
    elif all_pages:
        show_many(_counted(result), as_json=as_json)
    else:
        show_many(result.data, as_json=as_json)
        if result.has_more:
            remark(f"{len(result.data)} shown, and there are more: --all shows all of them, --limit up to 100.")


def _counted(items: Iterable[Any]) -> Iterable[Any]:
    """The items, with a count on standard error while they come."""
    with progress(SpinnerColumn(), TextColumn("{task.completed} objects")) as counting:
        task = counting.add_task("", total=None)
        for item in items:
            counting.advance(task)
            yield item


def _arguments(declaration: Declaration) -> list[inspect.Parameter]:
    meanings = declaration.meanings
    arguments = [_argument(each, sentence(meanings.get(each.name, ""))) for each in declaration.parameters]
    if declaration.idempotent:
        key: Any = Annotated[str | None, typer.Option(help="Send it again to be sure that nothing is done twice.")]
        arguments.append(_keyword("idempotency_key", key, None))
    if (clear := clear_option(declaration)) is not None:
        arguments.append(_keyword("clear", clear, None))
    if declaration.item_type is not None:
        all_pages: Any = Annotated[bool, typer.Option("--all", help="Follow the pages to the end.")]
        arguments.append(_keyword("all_pages", all_pages, default=False))
    as_json: Any = Annotated[bool, typer.Option("--json", help="Print JSON Lines, also on a terminal.")]
    return [*arguments, _keyword("as_json", as_json, default=False)]


def _argument(parameter: Parameter, text: str) -> inspect.Parameter:
    if parameter.place in ("path", "whole_body"):
        text = text or f"Id, which begins with {get_args(parameter.annotation)[1].prefix}."
        if parameter.place == "whole_body":
            text = f"{text} As JSON; - reads standard input."
        return _keyword(parameter.name, Annotated[str, typer.Argument(help=text)], inspect.Parameter.empty)
    kind = _kind(parameter)
    values = _values(parameter.annotation)
    text = f"{text} One of {', '.join(values)}.".strip() if values else text
    if kind is dict:
        text = f"{text} As JSON with snake_case keys{', or an id' if _may_be_text(parameter) else ''}."
    if kind is list:
        item = "" if values else " Each as a JSON object with snake_case keys."
        text = f"{text}{item} Repeat it for several."
    if parameter.required:
        option: Any = list[str] if kind is list else str
        return _keyword(parameter.name, Annotated[option, typer.Option(help=text)], inspect.Parameter.empty)
    annotation: Any = {list: list[str], bool: bool | None, int: int | None}.get(kind, str | None)
    return _keyword(parameter.name, Annotated[annotation, typer.Option(help=text)], [] if kind is list else None)


def _keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _value(parameter: Parameter, given: Any) -> Any:
    """The text of an option as the value that the operation takes."""
    kind = _kind(parameter)
    if parameter.place == "whole_body":
        return _json(sys.stdin.buffer.read() if given == "-" else given, parameter.name)
    if kind is list:
        return [_json(each, parameter.name) if each.lstrip().startswith("{") else each for each in given]
    if kind is dict and not (_may_be_text(parameter) and not given.lstrip().startswith("{")):
        return _json(given, f"--{_kebab(parameter.name)}")
    return given


def _kind(parameter: Parameter) -> type:
    """What an option holds: ``str``, ``int``, ``bool``, ``list``, or ``dict`` for a nested input."""
    arms = _arms(parameter.annotation)
    if any(isinstance(get_origin(arm), type) and issubclass(get_origin(arm), Iterable) for arm in arms):
        return list
    if any(hasattr(arm, "__required_keys__") for arm in arms):
        return dict
    return next((kind for kind in (bool, int) if kind in arms), str)


def _may_be_text(parameter: Parameter) -> bool:
    return str in _arms(parameter.annotation)


def _values(annotation: Any) -> list[str]:
    literals = (get_args(arm) for arm in _arms(annotation) if get_origin(arm) is Literal)
    return list(itertools.chain.from_iterable(literals))


def _arms(annotation: Any) -> list[Any]:
    """The kinds of value that an annotation allows, besides that it may be left out."""
    annotation = bare(annotation)
    if not is_union(annotation):
        return [annotation]
    found = itertools.chain.from_iterable(_arms(arm) for arm in get_args(annotation))
    return [arm for arm in found if arm not in (NotGiven, type(None))]


def _json(text: str | bytes, where: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        fail(f"{where} is not JSON: {error}")


def _kebab(name: str) -> str:
    return name.replace("_", "-")
