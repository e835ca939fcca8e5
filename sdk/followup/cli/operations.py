"""The operations of the service as commands, generated from the operations' declarations."""

import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import NoneType
from typing import Annotated, Any, get_args, get_origin

import typer

from followup import Page
from followup._annotations import MAX_PAGE_SIZE, Default
from followup._declarations.declarations import Declaration, Parameter
from followup._declarations.operations import declarations_of, group_name
from followup.cli.application import Application
from followup.cli.exits import reject
from followup.cli.help_pages import for_the_command_line, sentence
from followup.cli.options import AsJson, Columns, chosen_columns, completing, keyword, placeholder, with_values
from followup.cli.output import show_many, show_one, warn
from followup.cli.session import check_set_up, connected
from followup.cli.values import (
    STANDARD_INPUT,
    arms,
    bound_of,
    date_of,
    kebab,
    parse_json,
    parts_of,
    takes_date,
    takes_time,
    time_of,
    with_argument_names,
)
from followup.resources import all_groups
from followup.resources.account import AccountGroup
from followup.resources.event_batches import EventBatch
from followup.resources.events import Events

_OWN_OPTIONS = ("idempotency_key", "as_json", "all_pages", "clear", "columns")
"""Parameters of a command that are not parameters of its operation."""

_All = Annotated[
    bool, typer.Option("--all", help=f"Fetch all pages, of {MAX_PAGE_SIZE} items each unless --limit is passed.")
]


def commands_of(name: str) -> Application:
    """Return the commands of a resource: a generated one per operation, and a few written ones.

    Args:
        name: name of the group, such as ``webhook-endpoints``.
    """
    (group,) = (each for each in all_groups() if kebab(group_name(each)) == name)
    text = inspect.getdoc(check_set_up if group is AccountGroup else group)
    commands = Application(help=text, no_args_is_help=group is not AccountGroup)
    for declaration in declarations_of(group).values():
        text = for_the_command_line(declaration.description)
        commands.command(kebab(declaration.method_name), help=text)(_command(declaration))
    if group is Events:
        from followup.cli.sending import send

        commands.command("send")(send)
    if group is AccountGroup:
        commands.callback(invoke_without_command=True)(check_set_up)
    return commands


def _command(declaration: Declaration) -> Callable[..., None]:
    options = _names_in_errors(declaration)

    def run(**values: Any) -> None:
        own = {name: values.pop(name, None) for name in _OWN_OPTIONS}
        path = [values.pop(each.name) for each in declaration.parameters if each.place == "path"]
        arguments = {
            parameter.name: _argument_of(parameter, values[parameter.name])
            for parameter in declaration.parameters
            if values.get(parameter.name) not in (None, [])
        }
        if own["idempotency_key"] is not None:
            arguments["idempotency_key"] = own["idempotency_key"]
        arguments |= _cleared(declaration, own["clear"] or (), arguments)
        if own["all_pages"]:
            arguments.setdefault("limit", MAX_PAGE_SIZE)
        columns = None
        if own["columns"] and declaration.item_type is not None:
            columns = chosen_columns(own["columns"], declaration.item_type)
        with connected(options=options) as client:
            group, method = declaration.name.split(".")
            result = getattr(getattr(client, group), method)(*path, **arguments)
            if declaration.item_type is None:
                _show(result, as_json=bool(own["as_json"]))
            elif own["all_pages"]:
                show_many(_counted(result), as_json=bool(own["as_json"]), columns=columns)
            else:
                show_many(result.data, as_json=bool(own["as_json"]), columns=columns)
                _name_the_rest(result, backwards="ending_before" in arguments)

    run.__signature__ = inspect.Signature(_parameters(declaration))  # type: ignore[attr-defined]
    return run


def _names_in_errors(declaration: Declaration) -> dict[str, str]:
    """Return the option of each parameter, or its argument, by its names in JSON and in Python."""
    found = {}
    for each in declaration.parameters:
        if each.place != "whole_body":
            found[each.name] = found[each.wire_name] = "ID" if each.place == "path" else f"--{kebab(each.name)}"
    return found


def _show(result: Any, *, as_json: bool) -> None:
    if isinstance(result, EventBatch):
        show_many(result.results, as_json=as_json)
    else:
        show_one(result, as_json=as_json)


def _name_the_rest(page: Page[Any], *, backwards: bool) -> None:
    """Say that there is more than this page, and how to get it: in a pipe, too, whose reader would not notice."""
    if page.has_more and page.data:
        cursor = f"--ending-before {page.data[0].id}" if backwards else f"--starting-after {page.data[-1].id}"
        warn(f"Showing {len(page.data)}, and there are more: use --all, --limit (up to {MAX_PAGE_SIZE}) or {cursor}.")


def _counted(items: Iterable[Any]) -> Iterable[Any]:
    """Yield the items, and show their count on standard error meanwhile."""
    from rich.progress import SpinnerColumn, TextColumn

    from followup.cli.tables import progress

    with progress(SpinnerColumn(), TextColumn("{task.completed} objects")) as counting:
        task = counting.add_task("", total=None)
        for item in items:
            counting.advance(task)
            yield item


def _parameters(declaration: Declaration) -> list[inspect.Parameter]:
    meanings = declaration.meanings
    parameters = [_parameter(each, sentence(meanings.get(each.name, ""))) for each in declaration.parameters]
    if declaration.idempotent:
        text = "Repeat the command with the same key and it takes effect only once. Generated if omitted."
        parameters.append(keyword("idempotency_key", Annotated[str | None, typer.Option(help=text)], None))
    if (clear := _clear_option(declaration)) is not None:
        parameters.append(keyword("clear", clear, None))
    if declaration.item_type is not None:
        parameters.append(keyword("all_pages", _All, default=False))
        parameters.append(keyword("columns", Columns, None))
    return [*parameters, keyword("as_json", AsJson, default=False)]


def _parameter(parameter: Parameter, text: str) -> inspect.Parameter:
    if parameter.place in ("path", "whole_body"):
        text = text or f"Id, which begins with {get_args(parameter.annotation)[1].prefix}."
        if parameter.place == "whole_body":
            text = f"{text} As JSON; - reads JSON or JSON Lines from standard input."
        metavar = "ID" if parameter.place == "path" else "JSON"
        return keyword(parameter.name, Annotated[str, typer.Argument(help=text, metavar=metavar)])
    kind = _kind_of_option(parameter)
    shown_as = _placeholder(parameter, kind)
    complete = completing(parameter.annotation)
    text = _with_default(with_values(text, parameter.annotation), parameter.annotation)
    if kind is dict:
        text = f"{text} As JSON, - for standard input{', or an id' * _may_be_id(parameter)}."
    if kind is list:
        how = "Each as a JSON object, or all as an array" if _has_input_dicts(parameter) else "Separated by commas"
        text = f"{text} {how}; the option can be repeated."
    if parameter.required:
        option: Any = list[str] if kind is list else str
        option = Annotated[option, typer.Option(help=text, metavar=shown_as, autocompletion=complete)]
        return keyword(parameter.name, option)
    annotation: Any = {list: list[str], bool: bool | None, int: int | None}.get(kind, str | None)
    option = Annotated[annotation, typer.Option(help=text, metavar=shown_as, autocompletion=complete)]
    return keyword(parameter.name, option, [] if kind is list else None)


def _with_default(text: str, annotation: Any) -> str:
    """Return the help of an option, with the value that the service assumes if it is omitted."""
    marks = (mark for arm in (annotation, *get_args(annotation)) for mark in getattr(arm, "__metadata__", ()))
    value = next((mark.value for mark in marks if isinstance(mark, Default)), None)
    return text if value is None else f"{text.removesuffix('.')}; {value} if omitted."


def _placeholder(parameter: Parameter, kind: type) -> str | None:
    if kind is dict:
        return "JSON|ID" if _may_be_id(parameter) else "JSON"
    if kind is list and _has_input_dicts(parameter):
        return "JSON"
    found = placeholder(parameter.name, parameter.annotation)
    return found or ("TEXT" if kind is list else None)


def _argument_of(parameter: Parameter, typed: Any) -> Any:
    """Convert the value of an option, or of the argument that is the body, to the argument of the operation.

    Raises:
        UsageError: the value is invalid; the message names the option.
    """
    kind = _kind_of_option(parameter)
    if parameter.place == "whole_body":
        parsed = parse_json(typed, parameter.name, lines=True)
        return with_argument_names(parsed, parameter.annotation, parameter.name)
    option = f"--{kebab(parameter.name)}"
    if kind is list:
        return [*_items(parameter, typed, option)]
    if kind is dict:
        return _input_dict(parameter, typed, option)
    if takes_time(parameter.annotation):
        return _time(parameter, typed, option)
    return date_of(typed, option) if takes_date(parameter.annotation) else typed


def _kind_of_option(parameter: Parameter) -> type:
    """Return the type of an option: ``str``, ``int``, ``bool``, ``list``, or ``dict`` for a nested input."""
    allowed = arms(parameter.annotation)
    if any(isinstance(get_origin(arm), type) and issubclass(get_origin(arm), Iterable) for arm in allowed):
        return list
    if any(hasattr(arm, "__required_keys__") for arm in allowed):
        return dict
    return next((kind for kind in (bool, int) if kind in allowed), str)


def _has_input_dicts(parameter: Parameter) -> bool:
    """Return whether the items of a list are nested inputs."""
    items = (item for arm in arms(parameter.annotation) for item in get_args(arm))
    return any(hasattr(arm, "__required_keys__") for item in items for arm in arms(item))


def _may_be_id(parameter: Parameter) -> bool:
    """Return whether an option takes an id as well as a nested input."""
    return str in arms(parameter.annotation)


def _items(parameter: Parameter, typed: Iterable[str], option: str) -> Iterator[Any]:
    if not _has_input_dicts(parameter):
        yield from parts_of(typed)
        return
    for each in typed:
        parsed = with_argument_names(parse_json(each, option), parameter.annotation, option)
        yield from parsed if isinstance(parsed, list) else [parsed]


def _input_dict(parameter: Parameter, typed: str, option: str) -> Any:
    if _may_be_id(parameter) and typed != STANDARD_INPUT and not typed.lstrip().startswith("{"):
        return typed
    parsed = parse_json(typed, option)
    if _may_be_id(parameter) and isinstance(parsed, dict) and "object" in parsed and isinstance(parsed.get("id"), str):
        return parsed["id"]  # an object that a command has printed
    return with_argument_names(parsed, parameter.annotation, option)


def _time(parameter: Parameter, typed: str, option: str) -> str:
    if parameter.place != "query":
        return time_of(typed, option)
    time, note = bound_of(typed, option)
    if note:
        warn(note)
    return time


def _clear_option(declaration: Declaration) -> Any:
    """Return the annotation of ``--clear``; None for an operation without a field that can be cleared."""
    names = _clearable(declaration)
    if not names:
        return None
    text = f"Fields to clear, of {', '.join(map(kebab, names))}. Separated by commas; the option can be repeated."
    return Annotated[list[str] | None, typer.Option(metavar="FIELD", help=text)]


def _cleared(declaration: Declaration, fields: Iterable[str], changed: Collection[str]) -> Mapping[str, None]:
    """Return the arguments that clear these fields.

    Args:
        declaration: the operation.
        fields: the values of ``--clear``, spelled as the option, the argument or the field in JSON.
        changed: names of the arguments that the command sets.

    Raises:
        UsageError: a field cannot be cleared, or is also set.
    """
    clearable = _clearable(declaration)
    spellings = {
        spelling: name for name, parameter in clearable.items() for spelling in (name, kebab(name), parameter.wire_name)
    }
    found: dict[str, None] = {}
    for field in parts_of(fields):
        name = spellings.get(field)
        if name is None:
            reject(f"--clear {field}: only these fields can be cleared: {', '.join(map(kebab, clearable))}")
        if name in changed:
            reject(f"--clear {field} and --{kebab(name)} cannot be combined")
        found[name] = None
    return found


def _clearable(declaration: Declaration) -> dict[str, Parameter]:
    """Return the fields that an update may set to null (specification, section 4), by the names of their arguments."""
    if declaration.method != "PATCH":
        return {}
    return {each.name: each for each in declaration.parameters if NoneType in get_args(each.annotation)}
