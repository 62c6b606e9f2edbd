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
    "ocf_server",
    "ocf.runtime",
    "ocf.testing",
)
PROGRAM: Final = """
import sys
import threading

sys.modules.update(dict.fromkeys(sys.argv[1:]))  # an import of one of them fails

import json
from ocf.simulation.browser import RequestedOutput, answer

scenario = '''
hpa:
  apiVersion: autoscaling/v2
  kind: HorizontalPodAutoscaler
  metadata: {name: web}
  spec: {maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
workload: {capacity: 10, requests: {cpu: 500m}}
load: [{type: Weekly, rates: {"00:00": 5}, days: {sunday: 0.5}}, {type: Noise, share: 0.5}]
duration: 1h
nodeGroups: [{name: workers, maxNodes: 3, instanceTypes: [{name: small, cpu: 1, memory: 1Gi}]}]
'''
for output in RequestedOutput:
    request = {"files": {"scenario.yaml": scenario}, "output": output}
    assert json.loads(answer(json.dumps(request)))["problems"] == [], output
assert threading.active_count() == 1
print(*(name for name, module in sys.modules.items() if module))
"""


def test_what_the_browser_runs_needs_neither_a_cluster_nor_an_event_loop_nor_a_thread() -> None:
    """A fresh process: in this one, other tests have imported everything."""
    command = [sys.executable, "-c", PROGRAM, *FORBIDDEN]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 (ours)
    loaded = ran.stdout.split()

    assert [name for name in loaded if name.startswith(OURS)] == []
    assert "ocf.simulation.load.loads" in loaded
