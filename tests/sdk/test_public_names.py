"""The public interface: the names of the package, and the operations of both clients."""

import ast
import functools
import inspect
import subprocess
import sys

import pytest

import followup
import followup_mockserver
from followup import AsyncFollowUp, FollowUp

OPERATIONS = {
    "account": {"retrieve"},
    "patients": {"create", "retrieve", "update", "list"},
    "doctors": {"retrieve", "list"},
    "appointments": {"create", "retrieve", "update", "cancel", "list"},
    "visits": {"create", "retrieve", "list"},
    "intake_requests": {"create", "retrieve", "list"},
    "treatments": {"create", "retrieve", "list"},
    "events": {"create", "retrieve", "list"},
    "webhook_endpoints": {"create", "retrieve", "update", "delete", "list", "ping"},
    "webhook_deliveries": {"retrieve", "list"},
}
COMPOSED = {"events": {"send_all"}}
"""Methods of the groups that are not operations of the service themselves, but call some."""
METHODS = {group: operations | COMPOSED.get(group, set()) for group, operations in OPERATIONS.items()}


def operations(client: object) -> dict[str, dict[str, inspect.Signature]]:
    groups = {name: getattr(client, name) for name in dir(client) if name in OPERATIONS}
    return {
        name: {
            method: inspect.signature(getattr(group, method)) for method in dir(group) if not method.startswith("_")
        }
        for name, group in groups.items()
    }  # fmt: skip


def test_both_clients_offer_the_same_32_operations_with_the_same_parameters() -> None:
    options = {"api_key": "k", "base_url": "https://api.example.com"}
    sync_operations = operations(FollowUp(**options))
    assert {group: set(methods) for group, methods in sync_operations.items()} == METHODS
    assert operations(AsyncFollowUp(**options)) == sync_operations


def test_all_is_complete_and_what_type_checkers_see_is_there() -> None:
    source = ast.parse(inspect.getsource(followup))
    imported = {
        alias.name
        for node in ast.walk(source)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("followup")
        for alias in node.names
    }
    assert imported == set(followup.__all__) == set(dir(followup))
    assert all(getattr(followup, name) is not None for name in followup.__all__)


def test_every_public_name_of_the_mock_can_be_imported() -> None:
    missing = [name for name in followup_mockserver.__all__ if not hasattr(followup_mockserver, name)]
    assert missing == []


def test_an_unknown_name_is_an_attribute_error() -> None:
    client = FollowUp(api_key="k", base_url="https://api.example.com")
    for owner in (client, followup):
        with pytest.raises(AttributeError, match="'pharmacies'"):
            _ = owner.pharmacies
        assert not hasattr(owner, "__deepcopy__")


@pytest.mark.parametrize("kind", [FollowUp, AsyncFollowUp])
def test_a_client_offers_its_groups_and_two_methods_and_a_group_its_operations(kind: type) -> None:
    client = kind(api_key="k", base_url="https://api.example.com")
    assert client.patients is client.patients
    assert client.with_options(timeout=1).patients is not client.patients
    for derived in (client, client.with_options(timeout=1)):
        assert {name for name in dir(derived) if not name.startswith("_")} == {*OPERATIONS, "with_options", "close"}
        for group, methods in METHODS.items():
            assert {name for name in dir(getattr(derived, group)) if not name.startswith("_")} == methods


def test_every_class_is_documented_and_errors_print_under_their_public_name() -> None:
    for name in followup.__all__:
        value = getattr(followup, name)
        if inspect.isclass(value):
            assert value.__doc__, name
            if issubclass(value, Exception):
                assert value.__module__ == "followup"


@pytest.mark.parametrize(
    "module", ["flask", "typer", "followup_mockserver", "jsonschema_rs", "cattrs", "followup.resources.patients"]
)
def test_importing_the_sdk_imports_no_extra_and_nothing_that_only_a_call_needs(module: str) -> None:
    assert module not in imported_by("from followup import FollowUp")


def test_the_sdk_needs_no_rich() -> None:
    # httpx imports rich for its own command where rich is installed, so its absence is what can be tested.
    assert "followup._client" in imported_by("sys.modules['rich'] = None; from followup import FollowUp")


@functools.cache
def imported_by(code: str) -> set[str]:
    """The modules that a fresh interpreter imports for this."""
    script = f"import sys; before = set(sys.modules); {code}; print(*set(sys.modules) - before)"
    result = subprocess.run(
        [sys.executable, "-S", "-c", f"import site; site.main(); {script}"], capture_output=True, text=True, check=True
    )
    return set(result.stdout.split())
