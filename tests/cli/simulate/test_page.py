"""The examples of docs/autoscaling/simulate.md, the tables of its model, and the GitHub action that simulates."""

import os
import re
import subprocess
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from ocf.cli.app import app
from ocf.simulation import parse_scenario
from ocf.simulation.measures.catalog import MEASURES, MeasureUnit
from ocf.simulation.report.rows import COLUMN_NAMES, NODE_COLUMN_NAMES
from scripts.generate.real_load import PICTURE, of_page, render
from tests.cli.github_action import run_action
from tests.cli.page_commands import run_commands
from tests.cli.simulate.test_command import WEB
from tests.docs.test_words import rows

ROOT: Final = Path(__file__).parents[3]
MODEL: Final = "docs/autoscaling/simulation-model.md"
PAGE: Final = (ROOT / "docs" / "autoscaling" / "simulate.md").read_text(encoding="utf-8")
REAL_LOAD: Final = os.environ.get("OCF_REAL_LOAD")


def test_every_command_of_the_page_prints_the_output_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_commands(PAGE) == 2


def test_every_option_is_documented() -> None:
    documented = {
        name for row in rows("docs/autoscaling/simulate.md", "option") for name in re.findall(r"--[a-z-]+", row[0])
    }
    shown = CliRunner().invoke(app, ["simulate", "--help"], env={"COLUMNS": "200"}).stdout
    assert documented == set(re.findall(r"--[a-z-]+", shown)) - {"--help", "--traceback"}


def test_the_table_of_measures_is_the_code() -> None:
    units = {MeasureUnit.PRICE: "currency", MeasureUnit.PLAIN: ""}
    found = [(name, unit, definition) for name, unit, definition, *_ in rows(MODEL, "measure")]
    assert found == [
        (each.name, units.get(each.unit, str(each.unit)), each.definition.removesuffix("."))
        for each in MEASURES.values()
    ]


def test_the_table_of_columns_is_the_code() -> None:
    assert tuple(name for name, _ in rows(MODEL, "column")) == ("at", *COLUMN_NAMES, *NODE_COLUMN_NAMES)


def act(folder: Path, **inputs: str) -> "subprocess.CompletedProcess[str]":
    summary = {"GITHUB_STEP_SUMMARY": str(folder.parent / "summary.md")}
    return run_action(ROOT / "simulate" / "action.yml", folder, {**summary, **inputs})


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    found = tmp_path / "repository"
    for name in ("load/web.yaml", "load/a b.yaml"):
        (found / name).parent.mkdir(parents=True, exist_ok=True)
        (found / name).write_text(WEB)
    return found


def pages(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def test_the_action_simulates_each_scenario(repository: Path) -> None:
    ran = act(repository, SCENARIOS="load/web.yaml 'load/a b.yaml'")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.count("web: 20 min from") == 2
    assert pages(repository / "simulation") == ["load-a b.html", "load-web.html"]
    assert (repository.parent / "summary.md").read_text().count("```\nweb: 20 min from") == 2


def test_a_gate_fails_the_action_and_annotates(repository: Path) -> None:
    ran = act(repository, SCENARIOS="load/web.yaml\n'load/a b.yaml'\n", FAIL_IF="\nflaps > 100\n overload_time > 0%\n")
    annotations = re.findall("^::error title=ocf simulate::(.*)$", ran.stdout, re.MULTILINE)
    assert ran.returncode == 1
    assert len(annotations) == 2
    assert re.fullmatch(r"failed: overload_time > 0%25: overload_time is \S+ %25 in web", annotations[0])
    assert len(pages(repository / "simulation")) == 2


def test_the_action_compares(repository: Path) -> None:
    ran = act(repository, SCENARIOS="load/web.yaml 'load/a b.yaml'", COMPARE="true", REPORT="pages/here")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert re.search(r"^  measure +web +a b$", ran.stdout, re.MULTILINE)
    assert pages(repository / "pages" / "here") == ["comparison.html"]


def test_an_error_does_not_keep_other_scenarios_from_running(repository: Path) -> None:
    ran = act(repository, SCENARIOS="missing.yaml load/web.yaml")
    assert ran.returncode == 2
    assert "::error title=ocf simulate::error: missing.yaml" in ran.stdout
    assert pages(repository / "simulation") == ["load-web.html"]


@pytest.mark.skipif(REAL_LOAD is None, reason="needs OCF_REAL_LOAD, the folder with the load of the page")
def test_the_summary_and_the_picture_of_the_real_load_are_those_of_a_run() -> None:
    assert REAL_LOAD is not None
    scenario, shown = of_page(PAGE)
    summary, picture = render(scenario, Path(REAL_LOAD))
    assert summary.splitlines() == shown.splitlines()
    assert picture == PICTURE.read_text(encoding="utf-8")


def test_the_scenario_of_the_real_load_is_valid(tmp_path: Path) -> None:
    scenario, shown = of_page(PAGE)
    (tmp_path / "load.csv.gz").touch()
    assert shown.startswith(f"{parse_scenario(scenario, directory=tmp_path).name}: 527 h 31 min from ")
