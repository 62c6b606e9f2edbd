"""Dates: those of a recorded load are in all outputs of `ocf simulate`."""

import csv
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

from tests.cli.simulate.test_command import WEB, simulated


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("web.yaml").write_text(WEB)


DATED: Final = "".join(f"2026-03-01T{15 + at // 60}:{at % 60:02}:00+01:00,{10 + at}\n" for at in range(4, 70))
"""A load that was recorded from 14:04 on, in UTC."""


def test_a_recorded_load_has_its_dates_in_all_outputs() -> None:
    Path("load.csv").write_text(DATED)
    Path("recorded.yaml").write_text(re.sub(r"(?m)^load: .*$", "load: {type: Csv, path: load.csv}", WEB))
    options = ("--csv", "rows.csv", "--report", "dated.html")
    shown = simulated("recorded.yaml", *options).stdout
    [run] = json.loads(simulated("recorded.yaml", "--output", "json", *options).stdout)["runs"]

    assert run["dated"]
    for each in (*run["actions"], *run["conditions"]):
        assert each["at"] == (datetime(2026, 3, 1, 14, 4, tzinfo=UTC) + timedelta(seconds=each["time"])).isoformat()
    assert re.search(r"^ +2026-03-01 14:04 +2026-03-01 14:24$", shown, re.MULTILINE)
    assert "<td>2026-03-01 14:04:00</td>" in Path("dated.html").read_text()
    with Path("rows.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert (rows[0]["at"], rows[0]["time"]) == ("2026-03-01T14:04:00+00:00", "0")


def test_a_load_without_dates_has_times_since_the_start() -> None:
    [run] = json.loads(simulated("web.yaml", "--output", "json", "--no-report").stdout)["runs"]
    assert not run["dated"]
    assert {each["at"] for each in (*run["actions"], *run["conditions"])} == {None}


def test_parquet_has_the_dates_of_csv() -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    Path("dated.yaml").write_text(f"{WEB}start: 2026-03-01T15:04:00+01:00\n")
    options = ("--parquet", "rows.parquet", "--csv", "rows.csv", "--no-report")
    simulated("--compare", "web.yaml", "dated.yaml", *options)
    with Path("rows.csv").open(newline="") as file:
        texts = [row["at"] for row in csv.DictReader(file)]
    found = parquet.read_table("rows.parquet").column("at").to_pylist()
    assert [each.isoformat() if each else "" for each in found] == texts
    assert {"", "2026-03-01T14:04:00+00:00"} < set(texts)
