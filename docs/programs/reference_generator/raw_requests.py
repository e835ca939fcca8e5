"""Raw requests to a mock, for calls that the SDK does not make."""

from collections.abc import Mapping
from typing import Any

import attrs

from followup_mockserver import MockService
from followup_mockserver.world.state.registry import DEFAULT_KEY

from .traffic import NOW


@attrs.frozen
class JsonResponse:
    """The response to a raw request.

    Attributes:
        status: HTTP status.
        body: the decoded JSON.
    """

    status: int
    body: Mapping[str, Any]


class Requests:
    """Makes raw requests to a mock that is the same in every run.

    Args:
        options: further options of the mock.
    """

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        self.service = MockService(seed=1, start_time=NOW, **(options or {}))
        self._http = self.service.app.test_client()

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> JsonResponse:
        """Send a request.

        Args:
            method: the HTTP method.
            path: the path.
            body: sent as JSON, or as it is if it is bytes; None for no body.
            headers: headers, with an underscore instead of a hyphen. The default key authorizes the request unless
                ``Authorization`` is among them.
        """
        sent = {"Host": "followup.mock", "Authorization": f"Bearer {DEFAULT_KEY}"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        sent = {name: value for name, value in sent.items() if value}
        content = {"data": body} if isinstance(body, bytes) else {"json": body} if body is not None else {}
        response = self._http.open(path, method=method, headers=sent, **content)
        return JsonResponse(response.status_code, response.get_json())

    def post(self, path: str, body: Any = None, **headers: str) -> JsonResponse:
        """Send a POST."""
        return self.send("POST", path, body, **headers)

    def get(self, path: str, **headers: str) -> JsonResponse:
        """Send a GET."""
        return self.send("GET", path, **headers)

    def created(self, path: str, body: Any) -> str:
        """Create an object, and return its id."""
        return str(self.post(path, body).body["id"])
