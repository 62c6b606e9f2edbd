"""No message has the address of an object, whatever a caller passes: a builder that was not built, or a function."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest

from ocf.errors import ConfigError, NotFoundError, OcfError, ReconcileError, failure_text
from ocf.primitives import deployment
from scripts.site import api

MODULES: Final = [name for names in api.MODULES.values() for name in names]
PROCESSES: Final = frozenset({"main", "run", "run_process"})
ADDRESS: Final = re.compile("0x[0-9a-f]{6,}")


def passed(value: object) -> object:
    return value


VALUES: Final[list[object]] = [deployment.Builder("spec: {}"), passed, [deployment.Builder("spec: {}")]]
FILLERS: Final[list[object]] = ["a", 1]


def exported(module: str) -> Iterator[Callable[..., Any]]:
    """Yield what a module exports that can be called, and is neither an error nor the program of a process."""
    exports = import_module(module)
    for name in exports.__all__:
        found = getattr(exports, name)
        if not (inspect.isfunction(found) or inspect.isclass(found)) or not found.__module__.startswith("ocf"):
            continue
        if name not in PROCESSES and not (inspect.isclass(found) and issubclass(found, BaseException)):
            yield found


def calls(function: Callable[..., Any]) -> Iterator[dict[str, object]]:
    """Yield arguments of which one is wrong, and all that are required are there."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        # A subclass of `dict` has none.
        return
    named = [one for one in parameters if one.kind in {one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY}]
    required = [one.name for one in named if one.default is one.empty]
    for value in VALUES:
        yield dict.fromkeys(required, value)
        for filler in FILLERS:
            yield from ({**dict.fromkeys(required, filler), one.name: value} for one in named)


def problem(function: Callable[..., Any], given: dict[str, object]) -> str:
    """Return the text of the error of ours that a call raises; empty for none."""
    try:
        found = function(**given)
        if inspect.iscoroutine(found):
            found.close()
    except OcfError as error:
        return str(error)
    except Exception:  # noqa: BLE001 (Python's own errors, and those of pydantic, have texts of their own)
        return ""
    return ""


@pytest.mark.parametrize("module", MODULES)
def test_an_error_about_an_argument_has_no_address(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        texts = {problem(function, given) for function in exported(module) for given in calls(function)}

    assert [text for text in texts if ADDRESS.search(text)] == []


@pytest.mark.parametrize(
    "error",
    [
        ConfigError(f"expected a text, got {passed}"),
        ReconcileError("web", f"got {VALUES[0]}"),
        ExceptionGroup("two", [ConfigError(f"got {VALUES[2]}"), NotFoundError("gone")]),
    ],
    ids=["a function", "a builder", "several"],
)
def test_a_condition_has_no_address(error: Exception) -> None:
    assert not ADDRESS.search(failure_text(error))


def test_what_an_api_server_says_is_not_changed() -> None:
    said = "the blob at 0x7fe486a21a90 is gone"
    assert str(NotFoundError(said)) == said
