"""The reference of the control API has every call, with every field and parameter, and no others."""

import inspect
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from support.pages import DOCS, blocks

from followup_mockserver import MockService
from followup_mockserver.web.control_routes import ROUTES

FOLDER = DOCS / "reference/control_api"

ANSWER_FIELDS = {"patient", "contacts", "coverage", "address", "requestedService", "summary", "hospitalized", "sender"}


def sections() -> dict[str, str]:
    """Return the text of the section of each call, by its title."""
    found = {}
    for page in FOLDER.glob("*.md"):
        for title, text in re.findall(
            r"^## ((?:GET|POST|PUT|PATCH|DELETE) \S+)$(.*?)(?=^<a id=|\Z)", page.read_text(), re.MULTILINE | re.DOTALL
        ):
            assert title not in found
            found[title] = text
    return found


def without_names(path: str) -> str:
    return re.sub(r"\{\w+\}|<\w+>", "{}", path)


def test_every_call_has_a_section() -> None:
    served = {
        f"{method} {without_names(rule.rule)}"
        for rule in MockService().app.url_map.iter_rules()
        if rule.endpoint.startswith("control.")
        for method in rule.methods or ()
        if method not in ("HEAD", "OPTIONS")
    }
    assert {without_names(title) for title in sections()} == served


def test_the_index_links_to_every_call() -> None:
    index = (FOLDER / "index.md").read_text()
    linked = dict(re.findall(r"^\| \[`([^`]+)`\]\(([^)]+)\) \| .+\.? \|$", index, re.MULTILINE))
    assert set(linked) == set(sections())
    for target in linked.values():
        page, anchor = target.split("#")
        assert f'<a id="{anchor}"></a>' in (FOLDER / page).read_text()


@pytest.mark.parametrize(
    ("method", "path", "function"), ROUTES, ids=lambda value: str(value) if isinstance(value, str) else ""
)
def test_every_field_is_described(method: str, path: str, function: Callable[..., Any]) -> None:
    (text,) = [
        text for title, text in sections().items() if without_names(title) == f"{method} /_mock{without_names(path)}"
    ]
    shown = re.findall(r"^- \*\*`(\w+)`\*\* \([^)]+", text, re.MULTILINE)
    _control, *parameters = inspect.signature(function).parameters.values()
    expected = {_camel(each.name) for each in parameters}
    assert len(shown) == len(set(shown))
    assert set(shown) == expected | (ANSWER_FIELDS if path.endswith("/answer") else set())


def _camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(part.capitalize() for part in tail)


def test_no_description_is_about_values_of_python() -> None:
    for title, text in sections().items():
        prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
        assert not re.search(r"datetime|\bNone\b|\bor \)|activated_events", prose), title


def test_the_examples_show_what_calls_and_responses_contain() -> None:
    text = sections()["POST /_mock/clock/advance"]
    request, response = blocks(text, "http")
    assert request.startswith("POST /_mock/clock/advance HTTP/1.1\nContent-Type: application/json\n\n")
    assert json.loads(request.partition("\n\n")[2]) == {"hours": 3}
    assert response.startswith("HTTP/1.1 200 OK\n")
    assert list(json.loads(response.partition("\n\n")[2])) == ["now", "ran", "jobs"]
