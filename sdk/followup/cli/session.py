"""The client of a command. Its errors become one line, which suggests what to do."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from followup import (
    APIConnectionError,
    APIStatusError,
    AuthenticationError,
    ConfigurationError,
    FollowUpError,
    PermissionDeniedError,
)
from followup.cli.exits import fail, reject
from followup.cli.output import say

if TYPE_CHECKING:
    from followup import FollowUp


@contextmanager
def connected(
    *, requests_per_minute: int | None = None, options: Mapping[str, str] | None = None
) -> "Iterator[FollowUp]":
    """Create a client from the environment, and close it afterwards.

    Args:
        requests_per_minute: maximum number of requests in any 60 s; None for no limit.
        options: the options of the command, by the names of the parameters in JSON and in Python, for errors.

    Raises:
        CommandFailed: there is no key or base URL, or a call failed.
        UsageError: an argument is invalid; nothing was sent.
    """
    from followup import FollowUp  # imported late, because a help page needs no client

    try:
        with FollowUp(requests_per_minute=requests_per_minute) as client:
            yield client
    except ConfigurationError as error:
        fail(str(error).replace("pass api_key=..., or set", "set").replace("pass base_url=..., or set", "set"))
    except AuthenticationError as error:
        fail(f"{error}. Check FOLLOWUP_API_KEY: it may be invalid, revoked, expired, or of another environment.")
    except PermissionDeniedError as error:
        fail(f"{error}. Ask your organization for a key with this scope, or to enable the service line.")
    except APIConnectionError as error:
        fail(f'{error}. Check FOLLOWUP_BASE_URL and the network: "followup doctor" finds out what is wrong.')
    except APIStatusError as error:
        fail(_with_option(error, options or {}))
    except FollowUpError as error:
        fail(str(error))
    except (ValueError, TypeError) as error:
        reject(_begun_with_option(str(error), options or {}))


def _with_option(error: APIStatusError, options: Mapping[str, str]) -> str:
    """Return the text of an error, with the option for the invalid parameter, if the command has one."""
    param = error.param or ""
    option = options.get(re.split(r"[.\[]", param, maxsplit=1)[0])
    if option is None:
        return str(error)
    return str(error).replace(f"[param {param}]", f"[{option}]" if param.isalpha() else f"[{option}, {param}]")


def _begun_with_option(problem: str, options: Mapping[str, str]) -> str:
    """Return an error of the SDK, which begins with an argument, with the option instead."""
    problem = re.sub(r"^\w+\.\w+: (?=id )", "", problem)  # the operation, before the id in its path
    return re.sub(r"^\w+(?= )", lambda found: options.get(found[0], found[0]), problem)


def check_set_up(context: typer.Context) -> None:
    """Check the API key, the base URL and the network, and show the organization of the key."""
    if context.invoked_subcommand is not None:
        return
    with connected() as client:
        account = client.account.retrieve()
    environment = "production" if account.livemode else "test"
    say(f"OK: connected as {account.name} ({account.id}), {environment}, key {account.api_key.name!r}.")
    say(f"Service lines: {', '.join(account.service_lines)}")
    say(f"Scopes: {', '.join(account.api_key.scopes)}")
