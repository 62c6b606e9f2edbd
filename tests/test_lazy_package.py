"""Rules of packages whose `__init__` runs when it is needed, each in a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest


def answer(program: str, path: Path | None = None) -> str:
    """Return what a program prints.

    Args:
        program: The code.
        path: A folder in which modules are found, too.
    """
    found = f"import sys; sys.path.insert(0, {str(path)!r})\n" if path is not None else ""
    done = subprocess.run([sys.executable, "-c", found + program], capture_output=True, text=True, check=True)  # noqa: S603 (ours)
    return done.stdout.strip()


def test_the_models_of_the_client_load_neither_its_configuration_nor_its_http() -> None:
    program = (
        "import sys, ocf; from kubernetes.client import V1Pod; others = ('kubernetes.config', 'requests', 'urllib3')\n"
        "print([name for name in others if name in sys.modules])"
    )
    assert answer(program) == "[]"


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        pytest.param("import kubernetes; print(kubernetes.config.__name__)", "kubernetes.config", id="attribute"),
        pytest.param("from kubernetes import watch; print(watch.__name__)", "kubernetes.watch", id="from-import"),
        pytest.param(
            "import kubernetes.config.kube_config as one; print(one.__name__)",
            "kubernetes.config.kube_config",
            id="nested submodule",
        ),
        pytest.param("import kubernetes; print(kubernetes.__project__)", "kubernetes", id="value of the init"),
        pytest.param("from kubernetes import *; print(config.__name__)", "kubernetes.config", id="star import"),
        pytest.param("import kubernetes; print(hasattr(kubernetes, 'nothing'))", "False", id="unknown attribute"),
        pytest.param(
            "import kubernetes; print(kubernetes.__name__, bool(kubernetes.__path__))", "kubernetes True", id="package"
        ),
        pytest.param(
            "import importlib.resources, kubernetes\nfiles = importlib.resources.files(kubernetes)\n"
            "print(files.joinpath('__init__.py').is_file())",
            "True",
            id="resource",
        ),
        pytest.param(
            "import importlib, kubernetes; print(importlib.reload(kubernetes).informer.__name__)",
            "kubernetes.informer",
            id="reload",
        ),
    ],
)
def test_the_package_is_used_as_without_us(use: str, expected: str) -> None:
    assert answer(use) == expected
    assert answer(f"import ocf\n{use}") == expected


def test_the_init_runs_once() -> None:
    program = (
        "import ocf, kubernetes; kubernetes.__version__\n"
        "print('__getattr__' in vars(kubernetes), kubernetes.config is sys.modules['kubernetes.config'])"
    )
    assert answer(f"import sys\n{program}") == "False True"


def test_a_package_that_was_imported_before_stays_as_it_is() -> None:
    program = "import kubernetes; before = kubernetes; import ocf, sys; print(sys.modules['kubernetes'] is before)"
    assert answer(program) == "True"


def test_a_package_that_is_not_installed_stays_unknown() -> None:
    program = (
        "from ocf.lazy_package import defer_init; defer_init('nosuch')\n"
        "try: import nosuch\n"
        "except ModuleNotFoundError as error: print(error.name)"
    )
    assert answer(program) == "nosuch"


def test_an_error_inside_a_submodule_is_raised_as_it_is(tmp_path: Path) -> None:
    package = tmp_path / "fragile"
    package.mkdir()
    (package / "__init__.py").write_text("from fragile import broken\n", encoding="utf-8")
    (package / "broken.py").write_text("import missing_dependency\n", encoding="utf-8")
    program = (
        "from ocf.lazy_package import defer_init; defer_init('fragile')\nimport fragile\n"
        "try: fragile.broken\n"
        "except ModuleNotFoundError as error: print(error.name)"
    )
    assert answer(program, tmp_path) == "missing_dependency"
