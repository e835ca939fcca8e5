"""``groups.pyi``: current, complete, and enough for editors that use jedi (IPython, Jupyter, vim)."""

import importlib.util
from pathlib import Path

import jedi
import pytest
from contract import specification as spec

import followup
from followup import EventResult, Patient

ROOT = Path(__file__).parents[2]
STUB = Path(followup.__file__).parent / "resources" / "groups.pyi"


def test_it_is_what_the_declarations_generate() -> None:
    script = importlib.util.spec_from_file_location("group_stubs", ROOT / "tools" / "group_stubs.py")
    assert script is not None
    assert script.loader is not None
    module = importlib.util.module_from_spec(script)
    script.loader.exec_module(module)
    assert STUB.read_text(encoding="utf-8") == module.generated(), "run: python tools/group_stubs.py"


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Let jedi write its cache into a folder of the tests: the home of their user may be read-only."""
    jedi.settings.cache_directory = str(tmp_path_factory.mktemp("jedi"))


def completions(code: str) -> set[str]:
    lines = code.splitlines()
    found = jedi.Script(code).complete(len(lines), len(lines[-1]))
    return {each.name for each in found if not each.name.startswith("_")}


def fields(cls: type) -> set[str]:
    return {name for name in dir(cls) if not name.startswith("_")}


SYNC = "from followup import FollowUp\nclient = FollowUp()\n"
ASYNC = "from followup import AsyncFollowUp\nasync def use():\n    client = AsyncFollowUp()\n"


@pytest.mark.parametrize(
    ("code", "cls"),
    [
        (SYNC + "client.patients.list().first().", Patient),
        (SYNC + "client.with_options(deadline=5).patients.retrieve('pat_1').", Patient),
        (ASYNC + "    each = await client.patients.retrieve('pat_1')\n    each.", Patient),
        (ASYNC + "    async for each in client.patients.list():\n        each.", Patient),
        (ASYNC + "    async for each in client.events.send_all([]):\n        each.", EventResult),
    ],
)
def test_jedi_completes_the_fields_of_results_and_items(code: str, cls: type) -> None:
    assert completions(code) == fields(cls)


@pytest.mark.parametrize("start", [SYNC, ASYNC + "    "])
def test_jedi_completes_groups_and_operations(start: str) -> None:
    groups = {each.name.partition(".")[0] for each in spec.OPERATIONS}
    assert completions(start + "client.") == groups | {"close", "with_options"}
    for group in groups:
        operations = {each.name.partition(".")[2] for each in spec.OPERATIONS if each.name.startswith(f"{group}.")}
        expected = operations | ({"send_all"} if group == "events" else set())
        assert completions(f"{start}client.{group}.") == expected
