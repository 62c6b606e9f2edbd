"""Code that is loaded again: which files count, what is forgotten, and what an error leaves as it was."""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from prometheus_client import REGISTRY

from ocf.cli.source_code import Files, SourceCode, next_files
from ocf.errors import ConfigError
from ocf.testing import run_in_virtual_time

OPERATOR: Final = """
from ocf.runtime.operator import Operator, OwnerType
{more}
operator = Operator(name="{name}", owner=OwnerType("example.com/v1", "Shop"), components=lambda shop: ())
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Work in an empty folder, whose modules and metrics are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    before = set(sys.modules)
    collectors = set(REGISTRY._collector_to_names)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("rl_"):
            del sys.modules[name]
    for each in set(REGISTRY._collector_to_names) - collectors:
        REGISTRY.unregister(each)


def write(path: str, text: str = "") -> None:
    place = Path(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, encoding="utf-8")


def operator(name: str, more: str = "") -> str:
    return OPERATOR.format(name=name, more=more)


def name_of(source: SourceCode) -> str:
    return source.load().operators[0].name


@pytest.mark.parametrize(
    ("path", "counts"),
    [
        ("rl_shop/operator.py", True),
        ("rl_shop/new.py", True),
        ("rl_shop/templates/grafana.json", True),
        ("rl_shop/below/deep.py", True),
        ("rl_shop/notes.txt", False),
        ("rl_shop/shop.db", False),
        ("rl_shop/__pycache__/operator.cpython-313.pyc", False),
        ("rl_shop/.operator.py.swp", False),
        ("rl_shop/.#operator.py", False),
        ("rl_shop/operator.py~", False),
        ("beside.py", True),
        ("corner.yaml", False),
        ("other/__init__.py", True),
        ("other/module.py", True),
        ("rl_bare/used.py", True),
        ("docs/conf.py", False),
        (".venv/lib/module.py", False),
        ("venv/lib/python3.13/site-packages/rl_lib/__init__.py", False),
        ("node_modules/gyp/__init__.py", False),
    ],
)
@pytest.mark.usefixtures("folder")
def test_the_files_of_the_code_are_watched(path: str, *, counts: bool) -> None:
    """Those of editors are not: https://github.com/ember-cli/ember-cli/issues/6527."""
    write("rl_shop/__init__.py")
    write("rl_shop/operator.py", operator("a", "import rl_bare.used"))
    write("rl_bare/used.py")
    source = SourceCode("rl_shop.operator")
    source.load()
    write("other/__init__.py")

    write(path, "changed = 1")

    assert (Path.cwd() / path in source.files()) is counts


@pytest.mark.usefixtures("folder")
def test_a_folder_that_leads_to_itself_is_read_once() -> None:
    write("rl_shop/__init__.py", operator("a"))
    Path("rl_shop/again").symlink_to(Path("rl_shop").absolute())
    Path("rl_shop/broken.py").symlink_to("nowhere.py")
    source = SourceCode("rl_shop")
    source.load()

    assert [*source.files()] == [Path.cwd() / "rl_shop/__init__.py"]


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        pytest.param("rl_names.py", "NAME = 'b'", id="imported by another module"),
        pytest.param("rl_lib/deep/names.py", "NAME = 'b'", id="below a package"),
        pytest.param("rl_shop/operator.py", operator("b"), id="the operator"),
        pytest.param("rl_shop/name.json", '"b"', id="data"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_every_module_is_that_of_the_files(changed: str, text: str) -> None:
    """Size and time in seconds stay: by these, Python would take the compiled form of the former text.

    Python: https://github.com/python/cpython/issues/75953
    """
    write("rl_names.py", "NAME = 'a'")
    write("rl_lib/__init__.py", "from rl_lib.deep.names import NAME")
    write("rl_lib/deep/names.py", "NAME = 'a'")
    write("rl_shop/__init__.py")
    write("rl_shop/name.json", '"a"')
    more = (
        "import json, pathlib, rl_names, rl_lib\n"
        "found = {json.loads(pathlib.Path(__file__).with_name('name.json').read_text()), rl_names.NAME, rl_lib.NAME}"
    )
    named = operator("a", more).replace('"a"', '"b" if "b" in found else "a"')
    write("rl_shop/operator.py", named)
    for each in Path().rglob("*.*"):
        os.utime(each, (1_000_000, 1_000_000))
    source = SourceCode("rl_shop/operator.py")
    before, files = name_of(source), source.files()

    write(changed, text)
    os.utime(changed, ns=(1_000_000 * 10**9 + 1, 1_000_000 * 10**9 + 1))

    assert (before, name_of(source)) == ("a", "b")
    assert {*source.files().items()} - {*files.items()} == {
        (Path.cwd() / changed, source.files()[Path.cwd() / changed])
    }


@pytest.mark.usefixtures("folder")
def test_metrics_that_a_module_declares_are_declared_again() -> None:
    """prometheus/client_python: https://github.com/prometheus/client_python/issues/1042."""
    metric = "from prometheus_client import Counter\nSEEN = {'key': Counter('rl_seen', 'Shops seen.')}\n"
    write("rl_shop.py", operator("a", metric))
    source = SourceCode("rl_shop")
    first = source.load()
    first.modules["rl_shop"].SEEN["key"].inc()

    source.load()
    again = REGISTRY.get_sample_value("rl_seen_total")
    write("rl_shop.py", operator("a", f"{metric}raise RuntimeError"))
    with pytest.raises(ConfigError):
        source.load()
    failed = REGISTRY.get_sample_value("rl_seen_total")
    source.use(first)

    assert (again, failed, REGISTRY.get_sample_value("rl_seen_total")) == (0.0, 0.0, 1.0)


@pytest.mark.parametrize(
    "text",
    ["def half(", "raise SystemExit(3)", "import rl_absent", "from rl_names import OTHER", "1 / 0", "", "operator = 1"],
)
@pytest.mark.usefixtures("folder")
def test_an_error_leaves_the_modules_of_before(text: str) -> None:
    write("rl_names.py", "NAME = 'a'")
    write("rl_shop.py", operator("a", "import rl_names"))
    source = SourceCode("rl_shop")
    first = source.load()
    write("rl_names.py", "NAME = 'b'")
    write("rl_shop.py", f"import rl_names\n{text}")

    with pytest.raises(ConfigError):
        source.load()
    late = importlib.import_module("rl_names").NAME
    write("rl_shop.py", operator("b", "import rl_names"))

    assert {name: sys.modules[name] for name in first.modules} == first.modules
    assert late == "a"
    assert name_of(source) == "b"


@pytest.mark.usefixtures("folder")
def test_a_module_that_was_missing_is_found_once_it_exists() -> None:
    write("rl_shop/__init__.py")
    write("rl_shop/operator.py", operator("a"))
    source = SourceCode("rl_shop")
    source.load()
    write("rl_shop/operator.py", operator("b", "import rl_shop.deep.text, rl_late.text"))
    with pytest.raises(ConfigError, match=r"rl_shop.deep"):
        source.load()
    write("rl_shop/deep/text.py")
    with pytest.raises(ConfigError, match=r"rl_late"):
        source.load()
    before = {*source.files()}
    write("rl_late/__init__.py")
    write("rl_late/text.py")

    assert {each.parent.name for each in source.files().keys() - before} == {"rl_late"}
    assert name_of(source) == "b"


@pytest.mark.usefixtures("folder")
def test_what_is_not_of_the_code_stays_loaded() -> None:
    write("rl_shop.py", operator("a", "import json, click, ocf.component"))
    before = {name: sys.modules[name] for name in ("json", "click", "ocf.component", "__main__", __name__)}
    SourceCode("rl_shop").load()
    SourceCode("rl_shop").load()

    assert {name: sys.modules[name] for name in before} == before


def test_an_editable_package_is_loaded_from_where_it_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write("code/src/rl_shop/__init__.py", operator("a"))
    write("work/corner.yaml")
    sys.path.insert(0, str(folder / "code/src"))
    monkeypatch.chdir(folder / "work")
    source = SourceCode("rl_shop")
    source.load()
    write("../code/src/rl_shop/__init__.py", operator("b"))

    assert [*source.files()] == [folder / "code/src/rl_shop/__init__.py"]
    assert name_of(source) == "b"


def test_an_installed_package_cannot_change(folder: Path) -> None:
    write("site-packages/rl_shop/__init__.py", operator("a"))
    sys.path.insert(0, str(folder / "site-packages"))

    with pytest.raises(ConfigError, match=r"^--reload: the module rl_shop is installed, got /.*; change to the folder"):
        SourceCode("rl_shop").load()


def looks(*found: str) -> Callable[[], Files]:
    """Return a function that returns these files, one after the other, and then the last ones."""
    texts = iter(found)
    last = [""]

    def read() -> Files:
        last[0] = next(texts, last[0])
        return {Path(name): (0, 0, 0) for name in last[0].split()}

    return read


@pytest.mark.parametrize(
    ("found", "taken", "seconds"),
    [
        pytest.param(["a b"], "a b", 0.5, id="new"),
        pytest.param(["a", "a", "a b"], "a b", 1.0, id="later"),
        pytest.param(["", ""], "", 0.5, id="removed"),
        pytest.param(["a b", "a b c"], "a b c", 0.75, id="while it is written"),
        pytest.param(["", "a", "a", "a b"], "a b", 1.25, id="replaced"),
    ],
)
def test_a_change_is_taken_once_it_is_complete(found: list[str], taken: str, seconds: float) -> None:
    async def test() -> tuple[set[str], float]:
        files = await next_files(looks(*found), looks("a")(), asyncio.Event())
        return {str(path) for path in files or ()}, asyncio.get_running_loop().time()

    assert run_in_virtual_time(test()) == ({*taken.split()}, seconds)


def test_a_stop_ends_the_wait_for_a_change() -> None:
    async def test() -> Files | None:
        stop = asyncio.Event()
        asyncio.get_running_loop().call_later(60, stop.set)
        return await next_files(looks("a"), looks("a")(), stop)

    assert run_in_virtual_time(test()) is None
