"""The examples and tables of docs/autoscaling/tune.md."""

import re
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from ocf.cli.app import app
from ocf.cli.tune import executors
from ocf.simulation.tuning.samplers import SamplerName
from tests.cli.page_commands import run_commands
from tests.docs.test_words import rows

PAGE: Final = (Path(__file__).parents[3] / "docs" / "autoscaling" / "tune.md").read_text(encoding="utf-8")


def test_every_command_of_the_page_prints_the_output_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(executors, "_processors", lambda: 1)  # starting processes takes longer than the search
    assert run_commands(PAGE) == 1


def test_every_option_is_documented() -> None:
    documented = {
        name for row in rows("docs/autoscaling/tune.md", "option") for name in re.findall(r"--[a-z-]+", row[0])
    }
    shown = CliRunner().invoke(app, ["tune", "--help"], env={"COLUMNS": "200"}).stdout
    assert documented == set(re.findall(r"--[a-z-]+", shown)) - {"--help", "--traceback"}


def test_the_table_of_samplers_is_the_code() -> None:
    assert [name.strip("`") for name, _ in rows("docs/autoscaling/tune.md", "sampler")] == [*SamplerName]
