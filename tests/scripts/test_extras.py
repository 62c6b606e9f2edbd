"""Extras: one table on a page, and a command that needs one names it."""

import re
import shlex
import sys
import tomllib
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from ocf.cli.app import app
from ocf_server.cel.parser import parse
from scripts import check_pythons, wheel_smoke

ROOT: Final = Path(__file__).parents[2]
EXTRAS: Final = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
LIBRARIES: Final = {
    "cel": ["lark"],
    "dask": ["distributed"],
    "new": ["jinja2"],
    "parquet": ["pyarrow"],
    "testing": ["trustme"],
    "tune": ["optuna"],
}


def test_the_page_has_every_extra_with_what_it_brings() -> None:
    page = (ROOT / "docs" / "start" / "install.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| .* \| ([\w, -]+) \|$", page, re.MULTILINE)
    required = {extra: {re.split(r"[^\w-]", each)[0] for each in packages} for extra, packages in EXTRAS.items()}
    assert {extra: set(packages.split(", ")) for extra, packages in rows} == required


@pytest.mark.parametrize(("line", "extra"), [*wheel_smoke.NAMED.items()])
def test_a_command_without_its_extra_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, extra: str
) -> None:
    for name, text in wheel_smoke.FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    for library in LIBRARIES[extra]:
        for name in [name for name in sys.modules if name == library or name.startswith(f"{library}.")]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, library, None)
    # Another test may have parsed the rule of the definition, and the command would serve it for ever.
    parse.cache_clear()
    done = CliRunner().invoke(app, shlex.split(line))
    assert done.exit_code == 2
    assert f"ocf[{extra}]" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_core_imports_each_of_its_dependencies(monkeypatch: pytest.MonkeyPatch) -> None:
    assert wheel_smoke.unused_dependencies() == []

    monkeypatch.setattr(wheel_smoke, "requires", lambda _: ["PyYAML>=6", "sybil>=9", 'lark>=1; extra == "cel"'])
    assert wheel_smoke.unused_dependencies() == ["sybil"]


def test_the_extras_that_are_tried_are_those_of_the_project() -> None:
    assert set(check_pythons.EXTRAS.split(",")) | set(wheel_smoke.NAMED.values()) == set(EXTRAS)


def test_the_constraints_are_the_lowest_versions() -> None:
    constraints = [*check_pythons.pinned((ROOT / "requirements" / "lowest.lock").read_text(encoding="utf-8"))]
    assert "click==8.5.0" in constraints
    assert all(" " not in each for each in constraints)


def test_the_interpreter_of_this_process_is_found() -> None:
    version = "{}.{}".format(*sys.version_info)
    assert check_pythons.interpreter(version) is not None
    assert check_pythons.interpreter("2.99") is None


def test_a_named_python_that_is_missing_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert check_pythons.main(["2.99"]) == 1
    assert capsys.readouterr().err == "error: Python 2.99 is not installed\n"
