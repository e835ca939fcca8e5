"""The packages use no private name of another library but those that docs/extending.md lists, and those exist."""

import ast
import asyncio
import codecs
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = (ROOT / "sdk/followup", ROOT / "mockserver/followup_mockserver")

LISTED = {
    "_set_running_loop": asyncio,
    "_is_text_encoding": codecs.lookup("utf-8"),
    "_getframe": sys,
    "_current_frames": sys,
}
DOCUMENTED = {"_replace", "_asdict", "_fields", "_make", "_get_current_object", "_Decompress"}
"""Public in spite of their underscore: methods of named tuples and of a proxy of Werkzeug, and a type of typeshed."""


def files() -> Iterator[Path]:
    for package in PACKAGES:
        yield from package.rglob("*.py")


def bound_in(tree: ast.AST) -> Iterator[str]:
    """Yield the names that a file defines, assigns, imports or takes as arguments."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store()):
                yield name


def test_private_names_of_others_are_those_that_are_listed() -> None:
    trees = [ast.parse(each.read_text(encoding="utf-8")) for each in files()]
    own = {name for tree in trees for name in bound_in(tree)} | {part for each in files() for part in each.parts}
    own |= {each.stem for each in files()}
    used = {
        node.attr
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__")
    }
    imported = {
        alias.name
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and not (node.module or "").startswith("followup")
        for alias in node.names
        if alias.name.startswith("_")
    }
    found = (used - own - DOCUMENTED) | imported
    assert found <= LISTED.keys()
    assert [name for name in found if not hasattr(LISTED[name], name)] == []
    table = (ROOT / "docs/extending.md").read_text(encoding="utf-8")
    assert [name for name in found if f"{name}`" not in table] == []
