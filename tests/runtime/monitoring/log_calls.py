"""The loggers of the packages with the levels and the fields of their calls, read from the sources."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Final

import ocf
import ocf_server

__all__ = ["LEVELS", "Logger", "loggers"]

LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_METHODS: Final = {**{level.lower(): level for level in LEVELS}, "exception": "ERROR"}
_ROOTS: Final = (Path(ocf.__file__).parent, Path(ocf_server.__file__).parent)
# The HTTP library logs with the loggers that these modules make.
_OF_THE_SERVER: Final = "ocf_server.http.request_log"
_OF_OTHER_SERVERS: Final = "ocf.http.server"


@dataclass
class Logger:
    """What is logged with one logger.

    Attributes:
        levels: The levels.
        fields: The names of the structured fields.
    """

    levels: set[str] = field(default_factory=set)
    fields: set[str] = field(default_factory=set)


@cache
def loggers() -> dict[str, Logger]:
    """Return the loggers by their names."""
    found: dict[str, Logger] = defaultdict(Logger)
    for path in chain.from_iterable(root.rglob("*.py") for root in _ROOTS):
        module = ".".join(path.relative_to(_ROOTS[0].parent).with_suffix("").parts).removesuffix(".__init__")
        text = path.read_text(encoding="utf-8")
        if "getLogger" not in text and ".logger." not in text:
            continue
        tree = ast.parse(text)
        name = _name(tree, module)
        levels = {*_levels(tree)}
        if name:
            found[name].levels |= levels
            found[name].fields |= {*_fields(tree)}
        elif levels and not module.startswith("ocf.cli."):  # commands only choose what is written
            assert module.startswith("ocf_server.http."), f"{module} logs without a logger of its own"
            found[_OF_THE_SERVER].levels |= levels
    found[_OF_OTHER_SERVERS].levels.add("ERROR")
    return found


def _name(tree: ast.Module, module: str) -> str:
    """Return the name of the logger that a module makes; empty if it makes none."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "logging.getLogger" and node.args:
            (asked,) = node.args
            if isinstance(asked, ast.Constant):
                return str(asked.value)
            # Any other name is that of another module's logger, as of one that a command silences.
            if ast.unparse(asked) == "__name__":
                return module
    return ""


def _levels(tree: ast.Module) -> Iterator[str]:
    for node in _inside_functions(tree):
        if isinstance(node, ast.Attribute):
            owner = ast.unparse(node.value)
            if node.attr in _METHODS and (owner == "_log" or owner.endswith(".logger")):
                yield _METHODS[node.attr]
            if owner == "logging" and node.attr in LEVELS:
                yield node.attr


def _inside_functions(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the nodes of bodies, without defaults of parameters, such as a level that a user may choose."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for statement in node.body:
                yield from ast.walk(statement)


def _fields(tree: ast.Module) -> Iterator[str]:
    """Yield the keywords of `_emit`, and the keys of dictionaries in functions that name or make `extra`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("._emit"):
            yield from (word.arg for word in node.keywords if word.arg)
        if isinstance(node, ast.FunctionDef) and any(
            word in ast.unparse(node) for word in ("extra=", "_facts(", "**fields")
        ):
            for each in ast.walk(node):
                if isinstance(each, ast.Dict):
                    yield from (str(key.value) for key in each.keys if isinstance(key, ast.Constant))
