"""`typing.get_type_hints` works on everything that the reference of the site documents."""

import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, Final, get_type_hints

import pytest

from ocf.lazy_types import lazy_types
from ocf.lazy_types.signatures import annotated_names, signature_of
from scripts.site import api

MODULES: Final = [name for names in api.MODULES.values() for name in names]


def annotated(module: str) -> Iterator[tuple[str, Callable[..., Any] | type]]:
    """Yield the exported classes and functions of a module, and the public methods and properties of these classes."""
    exports = import_module(module)
    for name in exports.__all__:
        found = getattr(exports, name)
        if inspect.isfunction(found) or (inspect.isclass(found) and found.__module__.startswith("ocf.")):
            yield name, found
        if inspect.isclass(found) and found.__module__.startswith("ocf."):
            for attribute, value in vars(found).items():
                function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
                if inspect.isfunction(function) and function.__name__ == attribute and not attribute.startswith("_"):
                    yield f"{name}.{attribute}", function


@pytest.mark.parametrize("module", MODULES)
def test_every_annotation_of_a_module_resolves(module: str) -> None:
    problems = {}
    for name, found in annotated(module):
        try:
            hints = get_type_hints(found)
            if "ForwardRef(" in str(hints):
                problems[name] = str(hints)
        except (NameError, TypeError) as error:
            problems[name] = str(error)

    assert problems == {}


@pytest.mark.parametrize("module", MODULES)
def test_every_exported_class_and_function_has_a_docstring(module: str) -> None:
    """The name of a test of a suite for providers states its rule."""
    tests = {name for name, _ in annotated(module) if ".test_" in name}

    assert [name for name, found in annotated(module) if not inspect.getdoc(found) and name not in tests] == []


@pytest.mark.parametrize(
    "module", ["ocf.lazy_types.kubernetes", "ocf.lazy_types.pydantic", "ocf.objects.third_party.lazy"]
)
def test_types_of_a_library_are_imported_without_it(module: str) -> None:
    program = f"import sys; from {module} import V1Pod; print({{'kubernetes', 'pydantic'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603 (ours)
    assert done.stdout.strip() == "set()"


def test_only_types_are_exported_lazily() -> None:
    with pytest.raises(AttributeError, match="'__path__' is not the name of a type"):
        lazy_types("kubernetes.client")("__path__")


# What is imported for type checkers only needs no quotes from Python 3.14 on (PEP 649).
_QUOTE: Final = "" if sys.version_info >= (3, 14) else "'"


def test_the_signature_of_a_function_whose_annotations_have_unknown_names() -> None:
    known: dict[str, Any] = {}
    exec(f"def components(owner: {_QUOTE}Shop{_QUOTE}, *, dry: bool = False) -> None: ...", known)  # noqa: S102 (annotations of another version)

    parameters = signature_of(known["components"]).parameters

    assert list(parameters) == ["owner", "dry"]
    assert parameters["dry"].annotation is bool
    assert getattr(parameters["owner"].annotation, "__forward_arg__", parameters["owner"].annotation) == "Shop"


def test_the_names_that_a_class_annotates_although_their_types_are_unknown() -> None:
    known: dict[str, Any] = {}
    exec(f"class Web:\n identity: {_QUOTE}Name{_QUOTE}\n version: str", known)  # noqa: S102 (annotations of another version)

    assert list(annotated_names(known["Web"])) == ["identity", "version"]
    # Of a built-in type the attribute is a descriptor.
    assert list(annotated_names(type(sys))) == []


def test_a_missing_type_is_an_error_that_names_it() -> None:
    def broken() -> None: ...

    broken.__annotations__ = {"return": lazy_types("decimal")("Missing")}
    with pytest.raises(AttributeError, match="Missing"):
        get_type_hints(broken)
