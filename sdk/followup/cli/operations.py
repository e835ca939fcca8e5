"""The operations of the service as commands, generated from the operations' declarations."""

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

import typer

from followup import EventResult, Page
from followup._core.api_rules import MAX_PAGE_SIZE, Default
from followup._core.codec.encode import encode
from followup._core.declarations.declarations import Declaration, Parameter
from followup._core.declarations.operations import declarations_of, group_name
from followup.cli.application import Application
from followup.cli.lists import OPTIONS, Listing
from followup.cli.options import AsJson, keyword, option, sentence, spelling
from followup.cli.output import connected, fail, reject, say, show_one, warn
from followup.cli.values import argument_names, body_of, bound_of, kebab, parts_of, value_of_option
from followup.resources import all_groups
from followup.resources.event_batches import outcome_of

_All = Annotated[
    bool, typer.Option("--all", help=f"Fetch all pages, of {MAX_PAGE_SIZE} items each unless --limit is passed.")
]


def commands(name: str, _summary: str) -> Application:
    """Return the commands of a resource: a generated one per operation, and a few written ones.

    Args:
        name: name of the group, such as ``webhook-endpoints``.
    """
    (group,) = (each for each in all_groups() if kebab(group_name(each)) == name)
    text = inspect.getdoc(check_set_up if name == "account" else group)
    application = Application(help=text, no_args_is_help=name != "account")
    for declaration in declarations_of(group).values():
        text = sentence(declaration.description)
        application.command(kebab(declaration.method_name), help=text)(_command(declaration))
    if name == "events":
        from followup.cli.sending import send_all

        application.command("send-all")(send_all)
    if name == "account":
        application.callback(invoke_without_command=True)(check_set_up)
    return application


def check_set_up(context: typer.Context) -> None:
    """Check the API key, the base URL and the network; show the organization of the key."""
    if context.invoked_subcommand is not None:
        return
    with connected() as client:
        account = client.account.retrieve()
    environment = "production" if account.livemode else "test"
    say(f"OK: connected as {account.name} ({account.id}), {environment}, key {account.api_key.name!r}.")
    say(f"Service lines: {', '.join(account.service_lines)}")
    say(f"Scopes: {', '.join(account.api_key.scopes)}")


def _command(declaration: Declaration) -> Callable[..., None]:
    options, listing = _names_in_errors(declaration), _listing(declaration)

    def run(*, all_pages: bool = False, clear: Sequence[str] | None = None, **values: Any) -> None:
        output = None if listing is None else listing.output(values)
        path = [values.pop(each.name) for each in declaration.parameters if each.place == "path"]
        arguments = {
            each.name: _argument_of(each, values[each.name])
            for each in declaration.parameters
            if values.get(each.name) not in (None, [])
        }
        arguments |= _cleared(declaration, clear or (), arguments)
        if values.get("idempotency_key") is not None:
            arguments["idempotency_key"] = values["idempotency_key"]
        if all_pages:
            arguments.setdefault("limit", MAX_PAGE_SIZE)
        with connected(options=options) as client:
            group, method = declaration.name.split(".")
            result = getattr(getattr(client, group), method)(*path, **arguments)
            if output is None:
                show_one(encode(result), as_json=values["as_json"])
            elif not isinstance(result, Page):
                output.print(map(encode, result.results))
                if rejected := sum(outcome_of(each) != "accepted" for each in result.results):
                    fail(f"{rejected} of {len(result.results)} events {'was' if rejected == 1 else 'were'} rejected")
            else:
                output.print(map(encode, result if all_pages else result.data))
                if not all_pages:
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


def _name_the_rest(page: Page[Any], *, backwards: bool) -> None:
    """Say that there is more than this page, and how to get it: in a pipe, too, whose reader would not notice."""
    if page.has_more and page.data:
        cursor = f"--ending-before {page.data[0].id}" if backwards else f"--starting-after {page.data[-1].id}"
        warn(f"Showing {len(page.data)}, and there are more: use --all, --limit (up to {MAX_PAGE_SIZE}) or {cursor}.")


def _parameters(declaration: Declaration) -> list[inspect.Parameter]:
    meanings = declaration.meanings
    parameters = [_parameter(each, sentence(meanings.get(each.name, ""))) for each in declaration.parameters]
    if declaration.idempotent:
        text = "Repeat the command with the same key and it takes effect only once. Generated if omitted."
        parameters.append(keyword("idempotency_key", Annotated[str | None, typer.Option(help=text)], None))
    if names := _clearable(declaration):
        text = f"Fields to clear, of {', '.join(map(kebab, names))}. Separated by commas; the option can be repeated."
        clear = Annotated[list[str] | None, typer.Option(metavar="FIELD", help=text)]
        parameters.append(keyword("clear", clear, None))
    if declaration.item_type is not None:
        parameters.append(keyword("all_pages", _All, default=False))
    listing = _listing(declaration)
    return [*parameters, *([keyword("as_json", AsJson, default=False)] if listing is None else OPTIONS)]


def _listing(declaration: Declaration) -> Listing | None:
    """Return the listing of an operation that returns a list; None for one that returns an object."""
    if declaration.batch_error is not None:
        return Listing.of(EventResult)
    return None if declaration.item_type is None else Listing.of(declaration.item_type)


def _parameter(parameter: Parameter, text: str) -> inspect.Parameter:
    name = parameter.name
    if parameter.place == "path":
        return keyword(name, Annotated[str, typer.Argument(help=text, metavar="ID")])
    if parameter.place == "whole_body":
        text = f"{text} As JSON; - reads JSON or JSON Lines from standard input."
        return keyword(name, Annotated[str, typer.Argument(help=text, metavar="JSON")])
    default = inspect.Parameter.empty if parameter.required else None
    assumed = parameter.kinds.mark(Default)
    return option(name, parameter.kinds, text, default, shown_default=None if assumed is None else str(assumed.value))


def _argument_of(parameter: Parameter, typed: Any) -> Any:
    """Convert the value of an option, or of the argument that is the body, to the argument of the operation.

    Raises:
        CommandFailed: the value is invalid; the message names the option.
    """
    name, kinds = parameter.name, parameter.kinds
    rename = argument_names(kinds)
    if parameter.place == "whole_body":
        return body_of(typed, name, rename)
    if parameter.place == "query" and datetime in kinds.types:
        time, note = bound_of(typed, f"--{kebab(name)}")
        if note:
            warn(note)
        return time
    return value_of_option(name, kinds, typed, rename)


def _cleared(declaration: Declaration, fields: Iterable[str], changed: Collection[str]) -> Mapping[str, None]:
    """Return the arguments that clear these fields.

    Args:
        declaration: the operation.
        fields: the values of ``--clear``, spelled as the option, the argument or the field in JSON.
        changed: names of the arguments that the command sets.

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
