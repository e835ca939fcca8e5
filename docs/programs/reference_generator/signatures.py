"""Signatures as a user would write them, from the source: aliases such as ``DoctorId`` have no name at run time."""

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, get_origin

import attrs

from followup._core.api_rules import IdPrefix
from followup._core.plain import Late

_OMITTED = ("self", "cls")

_LONGEST_LINE = 64
"""Characters of a signature on one line; a longer one with several parameters has one on each line."""

_WIDTH = 88
"""Characters of any line."""


@attrs.frozen(kw_only=True)
class Parameter:
    """A parameter of a function.

    Attributes:
        type: the annotation, without internal types; empty if there is none.
        default: the default, as source code; None if the parameter is required.
    """

    name: str
    type: str
    default: str | None


@attrs.frozen(kw_only=True)
class Signature:
    """The signature of a function or constructor.

    Attributes:
        parameters: without ``self``.
        returns: the return annotation; ``None`` if there is none.
    """

    parameters: list[Parameter]
    returns: str
    _arguments: list[str]

    def code(self, name: str, *, returns: bool = True) -> str:
        """Return the signature on one line, or with one parameter on each if the line would be long.

        Args:
            name: the name to call the function by, such as ``client.patients.create``.
            returns: whether to show the return annotation.
        """
        result = f" -> {self.returns}" if returns else ""
        line = f"{name}({', '.join(self._arguments)}){result}"
        if len(line) <= (_LONGEST_LINE if len(self.parameters) > 1 else _WIDTH):
            return line
        return f"{name}(\n" + "".join(f"    {each},\n" for each in self._arguments) + f"){result}"


def signature_of(function: Callable[..., Any], owner: type[Any] | None = None) -> Signature:
    """Return the signature of a function.

    Args:
        function: the function.
        owner: the class whose method it is; it replaces type variables.
    """
    declared = inspect.unwrap(function)
    definition = _definition(declared)
    assert isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef)
    names = {**vars(sys.modules[declared.__module__]), **_types_of(owner)}
    arguments = definition.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + [*arguments.defaults]
    parameters: list[Parameter] = []
    shown: list[str] = []

    def show(argument: ast.arg, default: ast.expr | None, prefix: str = "") -> None:
        if argument.arg in _OMITTED:
            return
        kind = "" if argument.annotation is None else _code(public(argument.annotation, names))
        value = None if default is None else _default(default, names)
        parameters.append(Parameter(name=prefix + argument.arg, type=kind, default=value))
        typed = f"{prefix}{argument.arg}: {kind}" if kind else f"{prefix}{argument.arg}"
        shown.append(typed if value is None else f"{typed} = {value}" if kind else f"{typed}={value}")

    for position, (argument, default) in enumerate(zip(positional, defaults, strict=True), start=1):
        show(argument, default)
        if position == len(arguments.posonlyargs) and shown:
            shown.append("/")
    if arguments.vararg:
        show(arguments.vararg, None, "*")
    elif arguments.kwonlyargs:
        shown.append("*")
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        show(argument, default)
    if arguments.kwarg:
        show(arguments.kwarg, None, "**")
    returns = "None" if definition.returns is None else _code(public(definition.returns, names)).strip('"')
    if inspect.isgeneratorfunction(declared) and not inspect.isgeneratorfunction(function):
        returns = "AbstractContextManager[None]"
    return Signature(parameters=parameters, returns=returns, arguments=shown)


def _types_of(owner: type[Any] | None) -> dict[str, Any]:
    """Return the types that type variables stand for in the methods of a class."""
    if owner is None:
        return {}
    http_client = getattr(owner, "_http_client_class", None)
    return {"AnyClient": _Replaced(owner.__name__), "Self": _Replaced(owner.__name__)} | (
        {"HttpClient": _Replaced(f"httpx.{http_client}")} if http_client else {}
    )


@attrs.frozen
class _Replaced:
    text: str


def _code(node: ast.expr) -> str:
    return ast.unparse(node).replace("'", '"')


def _default(node: ast.expr, names: Mapping[str, Any]) -> str:
    """Return a default as code, with the value of a constant instead of its name."""
    if isinstance(node, ast.Name) and node.id != "NOT_GIVEN" and isinstance(names.get(node.id), int | float | str):
        return repr(names[node.id]).replace("'", '"')
    return _code(node)


def fields_of(cls: type[Any]) -> Iterator[tuple[str, str]]:
    """Iterate over the annotated attributes of a class: name and type."""
    definition = _definition(cls)
    assert isinstance(definition, ast.ClassDef)
    names = vars(sys.modules[cls.__module__])
    for each in definition.body:
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name) and not each.target.id.startswith("_"):
            yield each.target.id, _code(public(each.annotation, names))


def public(annotation: ast.expr, names: Mapping[str, Any]) -> ast.expr:
    """Return an annotation as users write it: ``NonEmpty | NotGiven`` is ``str``, ``followup.Page`` is ``Page``."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        annotation = ast.parse(annotation.value, mode="eval").body
    shown: ast.expr = _PublicNames(names).visit(annotation)
    return shown


class _PublicNames(ast.NodeTransformer):
    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = names

    def visit_Constant(self, node: ast.Constant) -> Any:
        if (
            isinstance(node.value, str)
            and re.fullmatch(r"[\w.\[\], |]+", node.value)
            and re.search(r"\||^followup\.", node.value)
        ):
            return self.visit(ast.parse(node.value, mode="eval").body)
        return node

    def visit_Name(self, node: ast.Name) -> Any:
        value: Any = self._names.get(node.id)
        if isinstance(value, _Replaced):
            return ast.parse(value.text, mode="eval").body
        if get_origin(value) is not Annotated or any(isinstance(each, IdPrefix) for each in value.__metadata__):
            return node
        return self.visit(_assigned(node.id, self._names["__name__"]))

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        module = ast.unparse(node.value)
        late = self._names.get(module)
        is_ours = isinstance(late, Late) and vars(late)["_name"].partition(".")[0] in ("followup", "datetime", "typing")
        return self.visit(ast.Name(node.attr)) if module in ("followup", "followup_mockserver") or is_ours else node

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        if ast.unparse(node.value) == "Required":
            return self.visit(node.slice)
        if ast.unparse(node.value) == "Annotated" and isinstance(node.slice, ast.Tuple):
            return self.visit(node.slice.elts[0])
        return self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        if ast.unparse(node.right) == "NotGiven":
            return self.visit(node.left)
        return self.generic_visit(node)


def _assigned(name: str, module: str) -> ast.expr:
    """Return the source of a type alias, from the module that defines it."""
    for node in ast.parse(inspect.getsource(sys.modules[module])).body:
        if isinstance(node, ast.Assign) and name in [each.id for each in node.targets if isinstance(each, ast.Name)]:
            return node.value
        if isinstance(node, ast.ImportFrom) and name in [each.name for each in node.names]:
            assert node.module is not None
            return _assigned(name, node.module)
    raise AssertionError(f"{module} does not define {name}")


def _definition(declared: Any) -> ast.stmt:
    return ast.parse(textwrap.dedent(inspect.getsource(declared))).body[0]
