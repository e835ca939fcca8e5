"""The public interface: the names of the package, and the operations of both clients."""

import ast
import functools
import importlib
import inspect
import subprocess
import sys
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import create_autospec

import httpx
import pytest
from contract import specification as spec

import followup
import followup_mockserver
from followup import AsyncFollowUp, FollowUp

METHODS = {"events": {"send_all"}}
for _operation in spec.OPERATIONS:
    METHODS.setdefault(_operation.name.split(".")[0], set()).add(_operation.name.split(".")[1])


def test_all_is_complete_and_what_type_checkers_see_is_there() -> None:
    for package in (followup, followup_mockserver):
        stub = Path(package.__file__).with_suffix(".pyi")
        tree = ast.parse((stub if stub.exists() else Path(package.__file__)).read_text(encoding="utf-8"))
        nodes = [*tree.body, *(each for node in tree.body if isinstance(node, ast.If) for each in node.body)]
        imports = [each for each in nodes if isinstance(each, ast.ImportFrom) and each.module != "typing"]
        names = {alias.name for each in imports for alias in each.names} - {"DjangoProject"}  # which needs Django
        assert names == set(package.__all__)
        assert all(getattr(package, name) is not None for name in package.__all__)
    assert dir(followup) == followup.__all__


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
        assert {name for name in dir(derived) if not name.startswith("_")} == {*METHODS, "with_options", "close"}
        for group, methods in METHODS.items():
            assert {name for name in dir(getattr(derived, group)) if not name.startswith("_")} == methods


@pytest.mark.parametrize("options", [{}, {"instance": True}])
def test_autospec_knows_the_operations_and_their_signatures(options: dict[str, Any]) -> None:
    spec = create_autospec(FollowUp, **options)
    spec.patients.create.return_value = 5
    assert spec.patients.create(phone="1") == 5
    with pytest.raises(TypeError, match="nonsense"):
        spec.patients.create(phone="1", nonsense=1)
    with pytest.raises(TypeError):
        spec.patients.retrieve()
    with pytest.raises(AttributeError):
        _ = spec.patients.creat


def test_every_class_is_documented_and_errors_print_under_their_public_name() -> None:
    for name in followup.__all__:
        value = getattr(followup, name)
        if inspect.isclass(value):
            assert value.__doc__, name
            if issubclass(value, Exception):
                assert value.__module__ == "followup"


EXTRAS = {"flask", "typer", "followup_mockserver", "sqlalchemy", "rich"}
OF_CALLS = {"httpx", "httpcore", "http.client", "ssl", "socket", "asyncio", "anyio", "email", "cattrs"}
CLIENT = "import os; os.environ['FOLLOWUP_TELEMETRY'] = 'off'; from followup import FollowUp; client = FollowUp"


@pytest.mark.parametrize("url", ["https://api.example.com/service", "http://localhost:4210", "http://127.0.0.1:4210"])
def test_a_client_imports_what_its_first_call_needs_in_that_call(url: str) -> None:
    ready = imported_by(f"{CLIENT}(api_key='k', base_url={url!r}, timeout=5); client.patients.list")
    assert ready & (EXTRAS | OF_CALLS) == set()
    of_http = {name.rpartition(".")[2] for name in ready if name.startswith("followup._core.http.")}
    assert of_http == {"connections"}
    assert {f"followup.resources.{group}" for group in METHODS} <= ready, "a call may be made in a frozen test"


def test_the_package_itself_imports_its_version() -> None:
    assert imported_by("import followup") - imported_by("import importlib") == {"followup", "followup._version"}


def test_verifying_a_webhook_imports_nothing_but_the_standard_library_and_little_of_that() -> None:
    verifying = imported_by("from followup import verify_signature, construct_event")
    needed = imported_by("import hmac, hashlib, json, math, importlib, collections.abc, __future__")
    assert {name for name in verifying - needed if not name.startswith("followup")} == set()
    assert {name for name in verifying if name.startswith("followup")} == {
        "followup",
        "followup._core",
        "followup._core.plain",
        "followup._core.tracebacks",
        "followup._core.errors",
        "followup._version",
        "followup.webhooks",
    }


PUBLIC_MODULES = (
    "followup", "followup.inbound", "followup.inbox", "followup.outbox", "followup.imports", "followup_mockserver",
    "followup_mockserver.simulation", "followup_mockserver.strategies", "followup_mockserver.pytest_plugin",
)  # fmt: skip


def annotated(name: str) -> Iterator[tuple[str, Any]]:
    """Yield the public functions and classes of a module, and the public methods of the classes, with their names."""
    module = importlib.import_module(name)
    for public in getattr(module, "__all__", None) or [each for each in dir(module) if not each.startswith("_")]:
        value = getattr(module, public)
        if not inspect.isroutine(value):
            value = getattr(value, "__wrapped__", value)  # of a fixture
        if not str(getattr(value, "__module__", "")).startswith("followup"):
            continue
        if inspect.isfunction(value) or inspect.isclass(value):
            yield f"{name}.{public}", value
        for each, member in inspect.getmembers_static(value) if inspect.isclass(value) else []:
            found = getattr(member, "fget", None) or getattr(member, "__func__", member)
            if inspect.isfunction(found) and (each == "__init__" or not each.startswith("_")):
                yield f"{name}.{public}.{each}", found


@pytest.mark.parametrize("module", PUBLIC_MODULES)
def test_the_annotations_of_every_public_name_resolve(module: str) -> None:
    unresolved = {}
    found = dict(annotated(module))
    for name, value in found.items():
        try:
            typing.get_type_hints(value)
        except NameError as error:
            unresolved[name] = str(error)
    assert found
    assert unresolved == {}
    if module == "followup":
        assert typing.get_type_hints(FollowUp.__init__)["http_client"] is not None
        assert httpx.Timeout in typing.get_args(typing.get_type_hints(FollowUp.__init__)["timeout"])
        assert typing.get_type_hints(followup.construct_event)["return"] is followup.WebhookEvent


@functools.cache
def imported_by(code: str) -> set[str]:
    """The modules that a fresh interpreter imports for this."""
    script = f"import sys; before = set(sys.modules)\n{code}\nprint(*set(sys.modules) - before)"
    result = subprocess.run(
        [sys.executable, "-S", "-c", f"import site; site.main()\n{script}"], capture_output=True, text=True, check=True
    )
    return set(result.stdout.split())
