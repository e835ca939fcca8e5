"""A client of the control API of a running mock, and where a mock listens. Needs neither Typer nor click.

The routes and httpx are imported late, because a help page needs neither.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from followup._for_mockserver import camel
from followup.cli.output import FAILURE, USAGE, CommandFailed, fail, reject

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 4210
DEFAULT_URL = f"http://{DEFAULT_HOST}:{DEFAULT_PORT}"
NO_URL = f"--url must be the base URL of a mock, such as {DEFAULT_URL}"

TOKEN_VARIABLE = "FOLLOWUP_MOCK_TOKEN"  # noqa: S105 - the name of a variable
"""The environment variable with the token of the control API, for ``serve`` and for the commands that call it."""

TIMEOUT = 300.0
"""Seconds. Advancing the clock by days takes long if an endpoint does not respond."""

_SNAPSHOT = "/snapshot"

_ID = "[A-Za-z0-9][A-Za-z0-9_.-]*"


def shown_url(url: str) -> str:
    """Return a URL for a message: without a user and a password."""
    return re.sub("//[^/]*@", "//", url)


class Remote:
    """Calls the control API of a running mock. A call that fails ends the command with one line.

    Args:
        url: the base URL of the mock.
        key: an API key of the organization to act on; None: the default organization.
        token: the token that the mock requires, if any.
        options: the options of the command, by the names of the parameters in JSON, for errors.

    Raises:
        CommandFailed: the key or the token is empty.
    """

    def __init__(self, url: str, key: str | None, token: str | None, options: Mapping[str, str] | None = None) -> None:
        self._url = url.rstrip("/")
        self._options = options or {}
        self._headers: dict[str, str] = {}
        for option, value in (("--api-key", key), ("--token", token)):
            if value is not None and not value.strip():
                reject(f"{option} must not be empty")
        if key is not None:
            self._headers["Authorization"] = f"Bearer {key}"
        if token is not None:
            from followup_mockserver.web.control_routes import TOKEN_HEADER

            self._headers[TOKEN_HEADER] = token

    def call(self, function: Callable[..., Any], path_id: str = "", /, **arguments: Any) -> Any:
        """Call a function of the control API.

        Args:
            function: one of the functions in ``ROUTES``.
            path_id: the id in the path of the route.
            arguments: the keyword arguments of the function; None is not sent.

        Returns:
            The decoded JSON of the response.

        Raises:
            CommandFailed: no mock responded, or it rejected the call, or the URL is invalid.
        """
        from followup_mockserver.web.control_routes import ROUTES

        method, path = next((method, path) for method, path, called in ROUTES if called == function)
        sent = {camel(name): value for name, value in arguments.items() if value is not None}
        request = {"params": sent} if method == "GET" else {"json": sent} if sent else {}
        if "<path_id>" in path and not re.fullmatch(_ID, path_id):
            reject("an id is expected, such as pat_LtcEPtRL2kbDkN4F7Wp4u6eG; --ids of the lists prints them")
        return self._send(method, path.replace("<path_id>", path_id), request)

    def save_snapshot(self) -> Any:
        """Return the state of the organization, or without a key of the whole mock.

        Raises:
            CommandFailed: no mock responded, or it rejected the call.
        """
        return self._send("GET", _SNAPSHOT, {})

    def load_snapshot(self, text: bytes) -> None:
        """Replace the state of the organization, or without a key of the whole mock.

        Raises:
            CommandFailed: no mock responded, or it rejected the call.
        """
        self._send("PUT", _SNAPSHOT, {"content": text, "headers": {"Content-Type": "application/json"}})

    def _send(self, method: str, path: str, request: dict[str, Any]) -> Any:
        import httpx

        from followup_mockserver.web.control_routes import PREFIX

        try:
            headers = {**self._headers, **request.pop("headers", {})}
            response = httpx.request(
                method, self._url + PREFIX + path, headers=headers, timeout=TIMEOUT, trust_env=False, **request
            )
            body = dict(response.json())
            problem = None if response.status_code == httpx.codes.OK else body["error"]
            param = problem and problem.get("param")
        except (httpx.InvalidURL, httpx.UnsupportedProtocol):
            reject(NO_URL)
        except httpx.HTTPError as error:
            place = shown_url(self._url)
            fail(f"no mock responds at {place} ({type(error).__name__}); start one with: followup-mock serve")
        except UnicodeEncodeError:
            reject("an option or argument has characters that cannot be sent")
        except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
            fail(f"the server at {shown_url(self._url)} is not a mock")
        if problem is not None:
            place = f"{self._options.get(param, param)}: " if isinstance(param, str) else ""
            is_usage = isinstance(param, str) and param in self._options and problem.get("code") == "parameter_invalid"
            advice = " Check --api-key or FOLLOWUP_API_KEY." if response.status_code == httpx.codes.UNAUTHORIZED else ""
            text, status = f"{place}{problem.get('message')}{advice}", USAGE if is_usage else FAILURE
            raise CommandFailed(text, status, str(problem.get("code")))
        return body
