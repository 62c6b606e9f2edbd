"""The public surface cannot change by accident, and importing it stays cheap."""

import importlib
import pkgutil
import subprocess
import sys
from dataclasses import is_dataclass

import pytest

import ocf
import ocf_server

PACKAGES = (ocf, ocf_server)
ROOMS = [found.name for each in PACKAGES for found in pkgutil.walk_packages(each.__path__, f"{each.__name__}.")]
# They export references to all types of other modules, which they do not load and so cannot list.
REFERENCES = {"ocf.lazy_types.kubernetes", "ocf.lazy_types.pydantic", "ocf.objects.third_party.lazy"}


@pytest.mark.parametrize("name", ["ocf", "ocf_server", *(name for name in ROOMS if name not in REFERENCES)])
def test_what_a_module_exports_is_sorted_and_there(name: str) -> None:
    module = importlib.import_module(name)
    exported = list(module.__all__)
    assert exported == sorted(exported, key=lambda word: (not word.isupper(), not word[0].isupper(), word))
    assert [word for word in exported if not hasattr(module, word)] == []


def test_generic_values_can_be_made_with_their_type_arguments() -> None:
    """On Python 3.11, `OwnerType[Shop](...)` raises a TypeError if the class is a frozen dataclass with slots.

    typing sets an attribute of the new object, and ignores an AttributeError only.
    """
    values = [value for name in ROOMS for value in vars(importlib.import_module(name)).values()]
    generic = {each for each in values if isinstance(each, type) and is_dataclass(each) and _parameters(each)}
    assert len(generic) > 5
    assert [each for each in generic if "__slots__" in vars(each) and _is_frozen(each)] == []


def _parameters(kind: type) -> tuple[object, ...]:
    return getattr(kind, "__parameters__", ())


def _is_frozen(kind: type) -> bool:
    found: bool = kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    return found


@pytest.mark.parametrize(
    "name",
    [
        "ocf",
        "ocf.component",
        "ocf.feature",
        "ocf.primitives.hpa",
        "ocf.autoscaling",
        "ocf_server",
        "ocf.nodegroups",
        "ocf.cluster.cache",
        "ocf.testing",
    ],
)
def test_importing_loads_no_api_models(name: str) -> None:
    """The client's models take longer to load than everything else together; they come when first used."""
    program = f"import {name}, sys; print([m for m in sys.modules if m.split('.')[0] == 'kubernetes'])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603 (ours)
    assert done.stdout.strip() == "[]"


def test_importing_an_operator_loads_no_servers_and_no_schema_generator() -> None:
    """Most of a short-lived operator's time is its start, so what only some processes need is loaded there."""
    rare = ["aiohttp", "ocf.runtime.admission.server", "ocf.runtime.crds.json_schema", "cryptography"]
    program = (
        "from examples.memcached.operator import memcached_operator\nimport sys\n"
        f"print([name for name in {rare} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603 (ours)
    assert done.stdout.strip() == "[]"
