"""``followup-mock collection``: each of its requests is sent as an API client would, and the mock accepts it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from contract.specification import OPERATIONS

from followup_mockserver import MockService
from followup_mockserver.cli.app import app
from followup_mockserver.http.in_process import InProcessTransport


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("collection") / "followup.json"
    with pytest.raises(SystemExit) as ended:
        app.run(["collection", "--output", str(path), "--url", "http://mock:4210"])
    assert not ended.value.code
    made: dict[str, Any] = json.loads(path.read_text())
    return made


def requests_in(item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "request" in item:
        yield item
    for each in item.get("item", ()):
        yield from requests_in(each)


class Client:
    """An API client: replaces variables, sends requests, and stores the ids as the scripts do."""

    def __init__(self, collection: dict[str, Any]) -> None:
        self.values = {each["key"]: each["value"] for each in collection["variable"]}
        self.http = httpx.Client(transport=InProcessTransport(MockService(rate_limit=0).app))

    def send(self, item: dict[str, Any]) -> httpx.Response:
        request, url = item["request"], item["request"]["url"]
        assert url["raw"] == "{{baseUrl}}/" + "/".join(url["path"])
        path = "/".join(url["path"])
        for each in url["variable"]:
            name = each["value"].removeprefix("{{").removesuffix("}}")
            path = path.replace(f":{each['key']}", self.values[name])
        response = self.http.request(
            request["method"],
            f"{self.values['baseUrl']}/{path}",
            headers={
                "Authorization": f"Bearer {self.values['apiKey']}",
                **{each["key"]: each["value"] for each in request["header"]},
            },
            content=request.get("body", {}).get("raw"),
        )
        for event in item.get("event", ()):
            name = event["script"]["exec"][-1].partition('set("')[2].partition('"')[0]
            body = response.json()
            if found := body.get("id") or next((each["id"] for each in body.get("data", ())), None):
                self.values[name] = found
        return response


def test_every_operation_is_a_request(collection: dict[str, Any]) -> None:
    service, control = collection["item"]
    assert sorted(each["name"] for each in requests_in(service)) == sorted(each.name for each in OPERATIONS)
    assert {"postClockAdvance", "postFaults"} <= {each["name"] for each in requests_in(control)}
    assert collection["variable"] == [
        {"key": "baseUrl", "value": "http://mock:4210"},
        {"key": "apiKey", "value": "fu_test_mock"},
    ]


def test_the_requests_of_the_service_work_one_after_another(collection: dict[str, Any]) -> None:
    client = Client(collection)
    requests = {each["name"]: each for each in requests_in(collection["item"][0])}
    last = ("webhook_endpoints.update", "webhook_endpoints.delete", "appointments.cancel")
    groups = [each["name"] for each in collection["item"][0]["item"]]

    def order(name: str) -> tuple[bool, int, bool]:
        return name in last, groups.index(name.partition(".")[0]), not name.endswith((".create", ".list"))

    for name in sorted(requests, key=order):
        response = client.send(requests[name])
        assert response.status_code == 200, f"{name}: {response.text}"


def test_the_file_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        app.run(["collection", "--output", str(tmp_path / "missing" / "file.json")])
    assert ended.value.code == 1
    assert capsys.readouterr().err.startswith("followup-mock: cannot write ")
