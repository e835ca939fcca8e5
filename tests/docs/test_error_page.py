"""The page of the errors lists every code of the mock, with what section 7 of the specification says about it."""

import ast
import re
from collections.abc import Iterator

import pytest
from support.pages import ROOT, read

PAGE = read("reference/errors.md")
WEBHOOKS = read("reference/webhooks.md")
MOCK = ROOT / "mockserver/followup_mockserver"

CODE_ARGUMENTS = {"ServiceError": 2, "invalid": 0, "_unauthorized": 0, "_forbidden": 0}
"""The functions that make errors, and the position of the code among their arguments."""


def rows() -> dict[str, list[str]]:
    """Return the cells of each row of the tables of codes, by code."""
    found = re.findall(r"^\| `(\w+)`(?:<br>`(\w+)`)? \| (.*) \|$", PAGE, re.MULTILINE)
    return {code: [kind, *re.sub(r"\[`(\w+)`\]\([^)]*\)", r"\1", rest).split(" | ")] for code, kind, rest in found}


def codes_in(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        position = CODE_ARGUMENTS.get(node.func.id)
        arguments = [] if position is None else node.args[position : position + 1]
        for each in [*arguments, *(keyword.value for keyword in node.keywords if keyword.arg == "code")]:
            if isinstance(each, ast.Constant) and isinstance(each.value, str):
                yield each.value


def test_every_code_of_the_mock_is_listed() -> None:
    used = {code for each in MOCK.rglob("*.py") for code in codes_in(each.read_text())}
    assert len(used) > 30
    of_flask = {"path_unknown", "method_not_allowed", "body_too_large", "request_malformed", "headers_too_large"}
    assert (used | of_flask) - set(rows()) == set()


@pytest.mark.parametrize(
    ("code", "kind", "status", "error", "retried"),
    [
        ("parameter_invalid", "invalid_request_error", "400", "InvalidRequestError", "no"),
        ("api_key_missing", "authentication_error", "401", "AuthenticationError", "no"),
        ("resource_missing", "invalid_request_error", "404", "NotFoundError", "no"),
        ("idempotency_key_in_use", "idempotency_error", "409", "ConflictError", "yes"),
        ("rate_limit_exceeded", "rate_limit_error", "429", "RateLimitError", "yes"),
        ("events_failed", "api_error", "500", "EventBatchError", "yes"),
    ],
)
def test_section_7_a_code_has_its_status_type_error_and_retry(
    code: str, kind: str, status: str, error: str, retried: str
) -> None:
    shown_kind, cause, *shown = rows()[code]
    assert (shown_kind, *shown) == (kind, status, error, retried)
    assert cause.endswith(".")


def test_the_page_of_webhooks_has_every_reason_of_a_signature_error() -> None:
    reasons = ["missing_header", "malformed_header", "wrong_signature", "too_old", "too_new", "malformed_payload"]
    assert re.findall(r"^\| `(\w+)` \| [^|]+ \|$", WEBHOOKS.partition("\n## Reasons\n")[2], re.MULTILINE) == reasons
