"""A client for a command, and its errors as one clear line that says what to do."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from followup import (
    APIConnectionError,
    AuthenticationError,
    ConfigurationError,
    FollowUp,
    FollowUpError,
    PermissionDeniedError,
)
from followup.cli.output import fail, say


@contextmanager
def connected() -> Iterator[FollowUp]:
    """A client made from the environment.

    What goes wrong inside ends the command with a line on standard error and a non-zero exit status.
    """
    try:
        with FollowUp() as client:
            yield client
    except ConfigurationError as error:
        fail(str(error).replace("pass api_key=..., or set", "set").replace("pass base_url=..., or set", "set"))
    except AuthenticationError as error:
        fail(f"{error}. Check FOLLOWUP_API_KEY: it may be wrong, revoked or expired, or of the other environment.")
    except PermissionDeniedError as error:
        fail(f"{error}. Ask the organization for a key with this scope, or for the service line.")
    except APIConnectionError as error:
        fail(f"{error}. Check FOLLOWUP_BASE_URL and the network.")
    except (FollowUpError, ValueError, TypeError) as error:
        fail(str(error))


def check_set_up(context: typer.Context) -> None:
    """Check that key, base URL and network are in order; what is wrong is told, and what to do."""
    if context.invoked_subcommand is not None:
        return
    with connected() as client:
        account = client.account.retrieve()
    environment = "production" if account.livemode else "test"
    say(f"In order: {account.name} ({account.id}), {environment}, key {account.api_key.name!r}.")
    say(f"Service lines: {', '.join(account.service_lines)}")
    say(f"Scopes: {', '.join(account.api_key.scopes)}")
