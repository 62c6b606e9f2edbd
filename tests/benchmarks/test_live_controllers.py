"""The comparison with kube-controller-manager: its rows, and what happens without the programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks import live_controllers
from benchmarks.figures import Count
from benchmarks.live_controllers import suite
from ocf.testing.envtest.binaries import REMEDY

if TYPE_CHECKING:
    import pytest

METRICS = """# TYPE horizontal_pod_autoscaler_controller_reconciliation_duration_seconds histogram
horizontal_pod_autoscaler_controller_reconciliation_duration_seconds_bucket{action="none",error="none",le="1.0"} 9
horizontal_pod_autoscaler_controller_reconciliation_duration_seconds_sum{action="none",error="none"} 0.4
horizontal_pod_autoscaler_controller_reconciliation_duration_seconds_count{action="none",error="none"} 7
horizontal_pod_autoscaler_controller_reconciliation_duration_seconds_count{action="scale_up",error="none"} 2.0
"""


def test_all_syncs_of_all_outcomes_are_counted() -> None:
    assert live_controllers.syncs_of(METRICS) == 9


def test_without_the_programs_the_rows_are_left_out_with_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(live_controllers, "find_programs", lambda: None)
    with suite() as rows:
        assert rows == []
    assert capsys.readouterr().err.splitlines() == [f"live is left out: {REMEDY} installs the programs that it needs"]


def test_each_size_is_compared_in_time_and_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_controllers, "find_programs", lambda: "installed")
    with suite() as rows:
        shares = {row.name: row.share for row in rows if isinstance(row, Count) and row.against}
        assert {row.against for row in rows} - {""} < {row.name for row in rows}
    assert shares == {
        f"live.{size}{what}": share for size in (200, 2_000) for what, share in (("", 0.5), (".memory", 1.0))
    }
