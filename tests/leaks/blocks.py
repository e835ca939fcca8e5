"""The ``except`` blocks of a package, and a tracer that notes which of them run, and raises an error in one."""

import ast
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Self


@dataclass(frozen=True)
class Block:
    """An ``except`` block.

    Attributes:
        name: its file, function and classes of errors, such as ``_core/call/options.py checked_base_url: ValueError``.
        file: path of the file.
        line: number of its first line after ``except``.
        raises: whether it has a ``raise``.
    """

    name: str
    file: str
    line: int
    raises: bool


def blocks_of(folder: Path, without: Iterable[str]) -> Iterator[Block]:
    """Yield the blocks of all modules in a folder, except those whose path begins so."""
    for path in sorted(folder.rglob("*.py")):
        relative = path.relative_to(folder).as_posix()
        if not relative.startswith(tuple(without)):
            names: Counter[str] = Counter()
            for function, node in _handlers(ast.parse(path.read_text(encoding="utf-8")), "module"):
                name = f"{relative} {function}: {ast.unparse(node.type) if node.type else ''}"
                names[name] += 1
                number = f" ({names[name]})" if names[name] > 1 else ""
                raises = any(isinstance(each, ast.Raise) for each in ast.walk(node))
                yield Block(name + number, str(path), node.body[0].lineno, raises)


def _handlers(node: ast.AST, function: str) -> Iterator[tuple[str, ast.ExceptHandler]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ExceptHandler):
            yield function, child
        is_function = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))
        yield from _handlers(child, child.name if is_function else function)


class Injected(BaseException):
    """Raised in a block by the tracer, as a signal handler could do."""


class Tracer:
    """Notes which blocks run.

    Attributes:
        reached: the blocks that have run.
        target: ``Injected`` is raised in this block, once, in the thread that made the tracer.
    """

    def __init__(self, blocks: Iterable[Block], target: Block | None = None) -> None:
        self._blocks = {(each.file, each.line): each for each in blocks}
        self._files = {each.file for each in self._blocks.values()}
        self.reached: set[Block] = set()
        self.target = target
        self._thread = threading.get_ident()

    @contextmanager
    def tracing(self) -> Iterator[Self]:
        """Trace this thread, and those that start meanwhile."""
        before = sys.gettrace()
        sys.settrace(self._on_call)
        threading.settrace(self._on_call)
        try:
            yield self
        finally:
            threading.settrace(None)
            sys.settrace(before)

    def _on_call(self, frame: FrameType, event: str, _: Any) -> Any:
        return self._on_line if event == "call" and frame.f_code.co_filename in self._files else None

    def _on_line(self, frame: FrameType, event: str, _: Any) -> Any:
        block = self._blocks.get((frame.f_code.co_filename, frame.f_lineno)) if event == "line" else None
        if block is not None:
            self.reached.add(block)
            if block == self.target and threading.get_ident() == self._thread:
                self.target = None
                raise Injected
        return self._on_line
