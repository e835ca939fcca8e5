"""A client of the control API of a running mock, and the commands that call it.

A parameter that is added to a function of the control API, or an option that is added to ``MockOptions``, becomes an
option of its command, with the description in its docstring as the help. The routes and httpx are imported late,
because a help page needs neither.
"""

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from followup import NOT_GIVEN
from followup._for_mockserver import annotations_of, camel, descriptions_in
from followup.cli.application import Application
from followup.cli.options import argument as argument_for
from followup.cli.options import kebab, keyword, option, own_parameters, sentence, value_of
from followup.cli.output import FAILURE, USAGE, CommandFailed, fail, reject
from followup_mockserver.world.settings import MockOptions, Options, meanings

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 4210
DEFAULT_URL = f"http://{DEFAULT_HOST}:{DEFAULT_PORT}"
NO_URL = f"--url must be the base URL of a mock, such as {DEFAULT_URL}"

TOKEN_VARIABLE = "FOLLOWUP_MOCK_TOKEN"  # noqa: S105 - the name of a variable
"""The environment variable with the token of the control API, for ``serve`` and for the commands that call it."""

TIMEOUT = 300.0
"""Seconds. Advancing the clock by days takes long if an endpoint does not respond."""

_ID = "[A-Za-z0-9][A-Za-z0-9_.-]*"

_IDS = {"patient": "patients", "appointment": "appointments", "doctor": "doctors"}
"""The arguments that are ids, and the groups of their objects."""

_MOST_CANDIDATES = 5


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
        from followup_mockserver.web.control_routes import TOKEN_HEADER

        self._url = url.rstrip("/")
        self._options = options or {}
        for shown, value in (("--api-key", key), ("--token", token)):
            if value is not None and not value.strip():
                reject(f"{shown} must not be empty")
        sent = {"Authorization": None if key is None else f"Bearer {key}", TOKEN_HEADER: token}
        self._headers = {name: value for name, value in sent.items() if value is not None}

    def call(self, function: Callable[..., Any], /, **arguments: Any) -> Any:
        """Call a function of the control API.

        Args:
            function: one of the functions in ``ROUTES``.
            arguments: its arguments; None is not sent. Instead of the id of an object, they may have what stands for
                it, see ``_id_of``; also ``id``, which is in the path of a route.

        Returns:
            The decoded JSON of the response.

        Raises:
            CommandFailed: no mock responded, or it rejected the call, or the URL is invalid.
        """
        from followup_mockserver.web.control_routes import ROUTES

        method, path = next((method, path) for method, path, called in ROUTES if called == function)
        path_id = arguments.pop("id", "")
        for name, group in _IDS.items():
            if isinstance(named := arguments.get(name), str):
                arguments[name] = self._id_of(named, group)
        sent = {camel(name): value for name, value in arguments.items() if value is not None}
        request = {"params": sent} if method == "GET" else {"json": sent} if sent else {}
        if "<path_id>" in path:
            path_id = self._id_of(path_id, path.split("/")[1])
            # A slash or dots would make another path of it.
            if not re.fullmatch(_ID, path_id):
                reject("an id is expected, such as pat_LtcEPtRL2kbDkN4F7Wp4u6eG; --ids of the lists prints them")
        return self.send(method, path.replace("<path_id>", path_id), **request)

    def _id_of(self, text: str, group: str) -> str:
        """Return the id of the only object that an external id, a phone or the beginning of an id means, else the text.

        Raises:
            CommandFailed: it may mean several objects.
        """
        found = self.send("GET", "/meant", params={"text": text, "group": group}) if text.strip() else {}
        if len(found) > 1:
            shown = [f"{each} ({matched_by})" for each, matched_by in found.items()][:_MOST_CANDIDATES]
            reject(f"{text!r} may mean {', '.join(shown)}{' and more' * (len(found) > len(shown))}")
        return next(iter(found), text)

    def send(self, method: str, path: str, **request: Any) -> Any:
        """Send a request to the control API, as ``httpx.request`` does, and return the decoded JSON of the response.

        Raises:
            CommandFailed: no mock responded, or it rejected the call, or the URL is invalid.
        """
        import httpx

        from followup_mockserver.web.control_routes import PREFIX

        try:
            # No proxy of the environment: it leads out of the network that the mock is in, mostly that of this machine.
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
        # Whatever responds there, with HTML or a list, or with an error of another form.
        except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
            fail(f"the server at {shown_url(self._url)} is not a mock")
        if problem is not None:
            place = f"{self._options.get(param, param)}: " if isinstance(param, str) else ""
            is_usage = isinstance(param, str) and param in self._options and problem.get("code") == "parameter_invalid"
            advice = " Check --api-key or FOLLOWUP_API_KEY." if response.status_code == httpx.codes.UNAUTHORIZED else ""
            text, status = f"{place}{problem.get('message')}{advice}", USAGE if is_usage else FAILURE
            raise CommandFailed(text, status, str(problem.get("code")))
        return body


Url = Annotated[str, typer.Option("--url", metavar="URL", envvar="FOLLOWUP_BASE_URL", help="Base URL of the mock.")]
"""The option ``--url``."""

_KEY = typer.Option("--api-key", metavar="KEY", envvar="FOLLOWUP_API_KEY", help="API key of the organization.")
_TOKEN = typer.Option("--token", metavar="TOKEN", envvar=TOKEN_VARIABLE, help="Token that the mock printed, if any.")
_WHICH_MOCK = [
    keyword("url", Url, DEFAULT_URL),
    keyword("api_key", Annotated[str | None, _KEY], None),
    keyword("token", Annotated[str | None, _TOKEN], None),
]


def control(
    application: Application,
    name: str,
    function: Callable[..., Any] | None = None,
    *,
    argument: str | None = None,
    defaults: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the decorated function, which takes a ``Remote``, as a command of an application.

    Args:
        application: the program or the group that gets the command.
        name: name of the command.
        function: a function of the control API. Its parameters become options of the command, the id of an object an
            argument. The decorated function takes their values as a mapping, its second argument.
        argument: name of the parameter that becomes an argument of the command instead of an option.
        defaults: defaults that replace those of ``function``.
        settings: the options of ``typer.Typer.command``.
    """
    parameters = {} if function is None else _parameters(function)
    shown = {each: each.upper() if each in ("id", argument) else f"--{kebab(each)}" for each in parameters}

    def add(command: Callable[..., None]) -> Callable[..., None]:
        written = own_parameters(command, 1 if function is None else 2)

        def run(*, url: str, api_key: str | None, token: str | None, **values: Any) -> None:
            remote = Remote(url, api_key, token, {camel(each): place for each, place in shown.items()})
            typed = {
                each: value_of(each, annotation, values[each], where=shown[each])
                for each, (_, annotation) in parameters.items()
            }
            passed = {each: value for each, value in typed.items() if value is not None}
            own = {each.name: values[each.name] for each in written}
            command(remote, *([] if function is None else [passed]), **own)

        generated = _options_of(function, parameters, argument, defaults or {})
        # Typer reads the options of a command from its signature.
        run.__signature__ = inspect.Signature(generated + written + _WHICH_MOCK)  # type: ignore[attr-defined]
        application.command(name, **{"help": inspect.getdoc(command), **settings})(run)
        return command

    return add


def _parameters(function: Callable[..., Any]) -> dict[str, tuple[inspect.Parameter, Any]]:
    annotations = annotations_of(function)
    _controls, *parameters = inspect.signature(function).parameters.values()
    return {each.name: (each, annotations[each.name]) for each in parameters}


def _options_of(
    function: Any, parameters: Mapping[str, Any], argument: str | None, defaults: Mapping[str, Any]
) -> list[inspect.Parameter]:
    texts = descriptions_in(function)
    found = []
    for name, (parameter, annotation) in parameters.items():
        text = sentence(texts.get(name, ""))
        default = defaults.get(name, None if parameter.default is NOT_GIVEN else parameter.default)
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            found.append(keyword(name, Annotated[str, typer.Argument(metavar=name.upper(), help=text)]))
        elif name == argument:
            found.append(argument_for(name, annotation, text))
        else:
            found.append(option(name, annotation, text, default))
    return found


def options_of_mock() -> list[inspect.Parameter]:
    """Return the options of a mock as parameters of a command."""
    texts, defaults = meanings(), Options()
    return [
        option(name, annotation, sentence(texts[name]), getattr(defaults, name, None))
        for name, annotation in annotations_of(MockOptions).items()
    ]


def mock_options(values: Mapping[str, Any]) -> Any:
    """Convert the values of options to the keyword arguments of a mock.

    Raises:
        CommandFailed: an option that takes numbers contains something else.
    """
    return {name: value_of(name, annotation, values[name]) for name, annotation in annotations_of(MockOptions).items()}
