"""The simulation runs where there is no cluster, such as in a browser."""

import subprocess
import sys
from typing import Final

FORBIDDEN: Final = ("aiohttp", "asyncio", "concurrent", "kubernetes", "multiprocessing", "numpy", "ssl", "subprocess")
OURS: Final = (
    "ocf.cli",
    "ocf.cluster",
    "ocf.component",
    "ocf.controllers",
    "ocf.embedded",
    "ocf.runtime",
    "ocf.testing",
)
PROGRAM: Final = """
import sys
from ocf.simulation import load_series, simulate
from ocf.simulation.report import Reported, to_html
from ocf.simulation.scenario import parse_scenario

scenario = parse_scenario('''
hpa:
  apiVersion: autoscaling/v2
  kind: HorizontalPodAutoscaler
  metadata: {name: web}
  spec: {maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
workload: {capacity: 10, requests: {cpu: 500m}}
load: [{type: Weekly, rates: {"00:00": 5}, days: {sunday: 0.5}}, {type: Noise, share: 0.5}]
duration: 1h
''')
to_html([Reported.of(simulate(scenario, load_series(scenario)), scenario)])
print(*sys.modules)
"""


def test_a_simulation_and_its_report_need_neither_a_cluster_nor_an_event_loop() -> None:
    """A fresh process: in this one, other tests have imported everything."""
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)  # noqa: S603 (ours)
    loaded = ran.stdout.split()

    assert [name for name in loaded if name.split(".")[0] in FORBIDDEN] == []
    assert [name for name in loaded if name.startswith(OURS)] == []
    assert "ocf.simulation.load.loads" in loaded
