"""The operations of the service as commands, generated from the operations' declarations."""

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any

import typer

from followup import EventResult, InvalidRequestError, Page
from followup._core.api_rules import MAX_PAGE_SIZE
from followup._core.codec.encode import encode
from followup._core.declarations import Declaration, Parameter
from followup._core.operations import declarations_of, group_name
from followup.cli.application import Application
from followup.cli.lists import OPTIONS, Listing, show_one
from followup.cli.options import AsJson, argument_names, kebab, keyword, option, parts_of, sentence, spelling, value_of
from followup.cli.output import connected, fail, reject, warn
from followup.resources import all_groups
from followup.resources.event_batches import outcome_of

_All = Annotated[
    bool, typer.Option("--all", help=f"Fetch all pages, of {MAX_PAGE_SIZE} items each unless --limit is passed.")
]


_FOUND_BY = dict.fromkeys(("doctors", "appointments", "visits"), "external id") | {"patients": "external id or phone"}
"""By what the objects of a group are found, too, instead of by their ids."""


def commands(name: str) -> Application:
    """Return the commands of a resource: a generated one per operation, and a written one.

    Args:
        name: name of the group, such as ``webhook-endpoints``.
    """
    (group,) = (each for each in all_groups() if kebab(group_name(each)) == name)
    application = Application(no_args_is_help=True)
    for declaration in declarations_of(group).values():
        text = sentence(declaration.description)
        application.command(kebab(declaration.method_name), help=text)(_command(declaration))
    if name == "events":
        from followup.cli.sending import send_all

        application.command("send-all")(send_all)
    return application


def _id_of(operations: Any, name: str, typed: str) -> str:
    """Return the id that was typed, or that of the only object with this external id or phone.

    Args:
        operations: the group of the object, of a client.
        name: name of the group.
        typed: the argument.

    Raises:
        CommandFailed: no object has it, or several have; the message shows their ids alone.
    """
    prefixes = (each.id_prefix for group in all_groups() for each in declarations_of(group).values())
    if not typed or name not in _FOUND_BY or typed.startswith(tuple(each.prefix for each in prefixes if each)):
        return typed  # the SDK rejects the id of an object of another kind
    # Compared again: a service that ignores a filter would have us change somebody else's object.
    found = {each.id for each in operations.list(external_id=typed).data if each.external_id == typed}
    if "phone" in _FOUND_BY[name] and not typed.strip("+0123456789 ().-"):
        with suppress(InvalidRequestError):  # it is no phone
            found |= {each.id for each in operations.list(phone=typed).data}
    if len(found) > 1:
        fail(f"{len(found)} {name} have this {_FOUND_BY[name]}; pass the id of one: {', '.join(sorted(found))}")
    return next(iter(found), "") or fail(f"this is no id, and none of the {name} has this {_FOUND_BY[name]}")


def _command(declaration: Declaration) -> Callable[..., None]:
    shown_names = {
        name: "ID" if each.place == "path" else f"--{kebab(each.name)}"
        for each in declaration.parameters
        if each.place != "whole_body"
        for name in (each.name, each.wire_name)
    }
    listing = _listing(declaration)

    def run(*, all_pages: bool = False, clear: Sequence[str] | None = None, **values: Any) -> None:
        output = None if listing is None else listing.output(values)
        path = [values.pop(each.name) for each in declaration.parameters if each.place == "path"]
        arguments = {
            name: value_of(name, each.kinds, values[name], argument_names(each.kinds), shown_names.get(name, name))
            for each in declaration.parameters
            if values.get(name := each.name) not in (None, [])
        }
        arguments |= _cleared(declaration, clear or (), arguments)
        if values.get("idempotency_key") is not None:
            arguments["idempotency_key"] = values["idempotency_key"]
        if all_pages:
            arguments.setdefault("limit", MAX_PAGE_SIZE)  # the default of 10 takes ten times the calls (section 8)
        with connected(options=shown_names) as client:
            group, method = declaration.name.split(".")
            operations = getattr(client, group)
            result = getattr(operations, method)(*(_id_of(operations, group, each) for each in path), **arguments)
            if output is None:
                show_one(encode(result), as_json=values["as_json"])
            elif not isinstance(result, Page):
                output.print(map(encode, result.results))
                if rejected := sum(outcome_of(each) != "accepted" for each in result.results):
                    fail(f"{rejected} of {len(result.results)} events {'was' if rejected == 1 else 'were'} rejected")
            else:
                output.print(map(encode, result if all_pages else result.data), unit=group if all_pages else "")
                if not all_pages:
                    _name_the_rest(result, backwards="ending_before" in arguments)

    run.__signature__ = inspect.Signature(_parameters(declaration))  # type: ignore[attr-defined]
    return run


def _name_the_rest(page: Page[Any], *, backwards: bool) -> None:
    """Say that there is more than this page, and how to get it: in a pipe, too, whose reader would not notice."""
    if page.has_more and page.data:
        cursor = f"--ending-before {page.data[0].id}" if backwards else f"--starting-after {page.data[-1].id}"
        warn(f"Showing {len(page.data)}, and there are more: use --all, --limit (up to {MAX_PAGE_SIZE}) or {cursor}.")


def _parameters(declaration: Declaration) -> list[inspect.Parameter]:
    meanings, found_by = declaration.meanings, _FOUND_BY.get(declaration.name.split(".")[0], "")
    parameters = [_parameter(each, sentence(meanings.get(each.name, "")), found_by) for each in declaration.parameters]
    if declaration.idempotent:
        text = "Repeat the command with the same key and it takes effect only once. Generated if omitted."
        parameters.append(
            keyword("idempotency_key", Annotated[str | None, typer.Option(metavar="KEY", help=text)], None)
        )
    if names := _clearable(declaration):
        text = f"Fields to clear, of {', '.join(map(kebab, names))}. Separated by commas; the option can be repeated."
        parameters.append(keyword("clear", Annotated[list[str] | None, typer.Option(metavar="FIELD", help=text)], None))
    if declaration.item_type is not None:
        parameters.append(keyword("all_pages", _All, default=False))
    return [*parameters, *([keyword("as_json", AsJson, default=False)] if _listing(declaration) is None else OPTIONS)]


def _listing(declaration: Declaration) -> Listing | None:
    """Return the listing of an operation that returns a list; None for one that returns an object."""
    if declaration.batch_error is not None:
        return Listing.of(EventResult)
    return None if declaration.item_type is None else Listing.of(declaration.item_type)


def _parameter(parameter: Parameter, text: str, found_by: str) -> inspect.Parameter:
    name = parameter.name
    if parameter.place == "path":
        text = text.replace(".", f"; or the {found_by}.") if found_by else text
        return keyword(name, Annotated[str, typer.Argument(help=text, metavar="ID")])
    if parameter.place == "whole_body":
        text = f"{text} As JSON or JSON Lines; @FILE reads a file, - standard input."
        return keyword(name, Annotated[str, typer.Argument(help=text, metavar="JSON")])
    default = inspect.Parameter.empty if parameter.required else None
    return option(name, parameter.kinds, text, default)


def _cleared(declaration: Declaration, fields: Iterable[str], changed: Collection[str]) -> Mapping[str, None]:
    """Return the arguments that clear the fields in ``--clear``.

    Raises:
        CommandFailed: a field cannot be cleared, or is also set.
    """
    names = _clearable(declaration)
    spellings = {spelling(name): name for name in names}
    found: dict[str, None] = {}
    for field in parts_of(fields):
        name = spellings.get(spelling(field))
        if name is None:
            reject(f"--clear {field}: only these fields can be cleared: {', '.join(map(kebab, names))}")
        if name in changed:
            reject(f"--clear {field} and --{kebab(name)} cannot be combined")
        found[name] = None
    return found


def _clearable(declaration: Declaration) -> list[str]:
    """Return the arguments of the fields that an update may set to null (specification, section 4)."""
    if declaration.method != "PATCH":
        return []
    return [each.name for each in declaration.parameters if each.kinds.nullable]
