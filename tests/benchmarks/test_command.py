"""The command `python -m benchmarks`, run as users run it."""

import json
import subprocess
from typing import Any

Figures = dict[str, dict[str, Any]]


def test_every_benchmark_runs_and_the_counts_hold(quick_figures: Figures) -> None:
    """A quick run judges no time, so it fails only where a benchmark is broken or a reconcile in sync writes."""
    assert quick_figures["reconcile.writes"]["holds"] is True
    assert quick_figures["fleet.writes"]["holds"] is True


def test_every_figure_has_the_same_fields(quick_figures: Figures) -> None:
    fields = {"name", "what", "unit", "minimum", "median", "maximum", "rounds", "limit", "holds", "against", "ratio"}
    fields.add("share")

    assert {frozenset(figure) for figure in quick_figures.values()} == {frozenset(fields)}


def test_every_ratio_names_its_yardstick(quick_figures: Figures) -> None:
    found = quick_figures

    assert [figure["name"] for figure in found.values() if (figure["ratio"] is None) != (not figure["against"])] == []
    assert {figure["against"] for figure in found.values() if figure["against"]} <= found.keys()


def test_no_time_is_judged_in_a_quick_run(quick_figures: Figures) -> None:
    judged = {figure["unit"] for figure in quick_figures.values() if figure["holds"] is not None}

    assert judged == {"count"}


def test_the_promised_limits_are_stated(quick_figures: Figures) -> None:
    limits = {figure["name"]: figure["limit"] for figure in quick_figures.values() if figure["limit"] is not None}
    # Where the real controller was built, only the ratio to it is judged.
    step = {} if "deciding.go" in quick_figures else {"deciding.step": 50_000}

    assert quick_figures["deciding.step"]["share"] == (None if step else 0.8)
    assert quick_figures["reconcile.in-sync"]["share"] == 20
    assert limits == step | {
        "rendering.full": 150_000,
        "deciding.sync": 40_000,
        "deciding.limits": 2_000,
        "controlling.sync": 15_000,
        "controlling.remembered": 64_000,
        "controlling.writes": 0,
        "controlling.one-namespace": 7,
        "controlling.ten-namespaces": 16,
        "controlling.hundred-namespaces": 106,
        "controlling.many": 16,
        "serving.wait": 100_000_000,
        "serving.left": 64,
        "gate.check": 2_000,
        "import.ocf": 50_000_000,
        "import.ocf.models": 0,
        "reconcile.reads": 6,
        "reconcile.writes": 0,
        "bursts.children": 12,
        "bursts.selecting": 5,
        "bursts.writes": 101,
        "bursts.at-once": 25,
        "fleet.reads": 0,
        "fleet.status": 1,
        "fleet.writes": 0,
        "hpa.validate": 100_000,
        "hpa.quantity": 2_000,
        "parts.get": 20_000,
        "parts.apply": 300_000,
        "parts.memory": 12_000,
        "command.validate": 300_000_000,
        "command.thousand": 1_000_000_000,
        "cluster.start": 500_000_000,
        "caches.idle": 0,
        "nodegroups.pack": 500_000_000,
        "nodegroups.pack.many": 10_000_000_000,
        "nodegroups.drain": 2_000_000_000,
        "nodegroup-controller.reconcile": 2_000,
        "nodegroup-controller.requests": 0,
        "simulation.weeks": 2_000_000_000,
        "simulation.weeks_with_report": 5_000_000_000,
        "simulation.day": 60_000_000,
        "simulation.day_with_nodes": 10_000_000_000,
        "simulation.restless_day_with_nodes": 10_000_000_000,
        "simulation.sweep": 30_000_000_000,
    }


def test_the_machine_is_described_without_naming_it(quick: subprocess.CompletedProcess[str]) -> None:
    assert set(json.loads(quick.stdout)["machine"]) == {"cpu", "cores", "python", "platform"}


def test_progress_goes_to_the_other_stream(quick: subprocess.CompletedProcess[str]) -> None:
    """What is printed stays one JSON document, whatever is shown while it is measured."""
    # A row whose program was not built is left out with one line.
    shown = [line for line in quick.stderr.splitlines() if " is left out: " not in line]
    counts = [each["name"] for each in json.loads(quick.stdout)["figures"] if each["unit"] == "count"]
    assert shown == ["round 1 of 1", *(f"count {name}" for name in counts)]
