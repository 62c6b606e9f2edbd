"""The public surface cannot change by accident, and importing it stays cheap."""

import importlib
import pkgutil
import subprocess
import sys
from dataclasses import is_dataclass
from types import ModuleType

import pytest

import ocf
import ocf_server

PACKAGES = (ocf, ocf_server)
ROOMS = [found.name for each in PACKAGES for found in pkgutil.walk_packages(each.__path__, f"{each.__name__}.")]
# They export references to all types of other modules, which they do not load and so cannot list.
REFERENCES = {"ocf.lazy_types.kubernetes", "ocf.lazy_types.pydantic", "ocf.objects.third_party.lazy"}


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_what_a_module_exports_is_sorted_and_there(package: ModuleType) -> None:
    """One case for each package: more than a thousand cases would take longer to collect than to run."""
    unsorted, missing = {}, {}
    for name in (package.__name__, *(name for name in ROOMS if name.startswith(f"{package.__name__}."))):
        if name in REFERENCES:
            continue
        module = importlib.import_module(name)
        exported = list(module.__all__)
        if exported != sorted(exported, key=lambda word: (not word.isupper(), not word[0].isupper(), word)):
            unsorted[name] = exported
        if absent := [word for word in exported if not hasattr(module, word)]:
            missing[name] = absent
    assert (unsorted, missing) == ({}, {})


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


def test_importing_loads_no_api_models() -> None:
    """The client's models take longer to load than everything else together; they come when first used."""
    names = (
        "ocf",
        "ocf.component",
        "ocf.feature",
        "ocf.primitives.hpa",
        "ocf.autoscaling",
        "ocf_server",
        "ocf.nodegroups",
        "ocf.cluster.cache",
        "ocf.testing",
    )
    program = (
        "import importlib, sys\n"
        f"for name in {names}:\n"
        "    importlib.import_module(name)\n"
        "    print(name, [m for m in sys.modules if m.split('.')[0] == 'kubernetes'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603 (ours)
    # The first one that does not have an empty list is to blame.
    assert done.stdout.splitlines() == [f"{name} []" for name in names]


def test_importing_an_operator_loads_no_servers_and_no_schema_generator() -> None:
    """Most of a short-lived operator's time is its start, so what only some processes need is loaded there."""
    rare = ["aiohttp", "ocf.runtime.admission.server", "ocf.runtime.crds.json_schema", "cryptography"]
    program = (
        "from examples.memcached.operator import memcached_operator\nimport sys\n"
        f"print([name for name in {rare} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603 (ours)
    assert done.stdout.strip() == "[]"
