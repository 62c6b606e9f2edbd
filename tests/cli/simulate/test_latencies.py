"""Latencies that mean nothing are in no output of `ocf simulate`."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.simulate.test_command import WEB, simulated
from tests.simulation.recording.recordings import write

LATENCY = re.compile("latenc|late_share", re.IGNORECASE)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("web.yaml").write_text(WEB)
    plain = WEB.replace(", latency: {atMost: 1s}", "")
    Path("connected.yaml").write_text(plain.replace("capacity: 10,", "capacity: 10, connections: {lifetime: 5m},"))
    write(tmp_path, None).rename("cores.jsonl")


@pytest.mark.parametrize("name", ["connected.yaml", "cores.jsonl"])
def test_no_output_has_a_latency(name: str) -> None:
    shown = simulated(name, "--report", "page.html", "--csv", "rows.csv").stdout
    found = simulated(name, "--output", "json", "--no-report").stdout
    assert simulated("web.yaml").exit_code == 0
    assert all(map(LATENCY.search, (simulated("web.yaml").stdout, Path("report.html").read_text())))
    texts = (shown, found, Path("page.html").read_text(), Path("rows.csv").read_text())
    assert [LATENCY.search(each) for each in texts] == [None] * 4


def test_a_comparison_has_a_dash_for_the_run_without_latencies() -> None:
    both = simulated("--compare", "web.yaml", "connected.yaml", "--no-report").stdout
    [line] = re.findall("^ *latency, median .*$", both, re.MULTILINE)
    assert line.split()[-1] == "-"
    same = simulated("--compare", "connected.yaml", "connected.yaml", "--no-report").stdout
    assert not LATENCY.search(same)


def test_a_gate_on_a_latency_says_why_there_is_none() -> None:
    done = simulated("connected.yaml", "--no-report", "--fail-if", "latency_p95 > 1s")
    assert done.exit_code == 2
    assert (
        "the run has no latency_p95: no load was served, it is one of cores or bytes, or it arrives over" in done.stderr
    )


def test_an_objective_of_the_latency_has_no_verdict() -> None:
    text = Path("connected.yaml").read_text()
    Path("bound.yaml").write_text(text.replace("overloadTime: 0.5", "overloadTime: 0.5, latency: {atMost: 1s}"))
    [run] = json.loads(simulated("bound.yaml", "--output", "json", "--no-report").stdout)["runs"]
    assert [each["objective"] for each in run["objectives"]] == ["overload time at most 50 %"]
    assert [each.split(":")[0] for each in run["warnings"]] == [
        "`objectives.latency` is left out with `workload.connections`"
    ]
