"""Test helpers for operators: clocks, faults, simulated crashes, the no-write proof, golden files, a condition linter.

Every wrapper of a cluster accepts any implementation of `Cluster`. The faults are in the separate module
`ocf.testing.faults`, the pytest fixtures in `ocf.testing.plugin`; no other module of this package needs pytest.
"""

from typing import TYPE_CHECKING

from ocf.cluster.interceptor import InterceptingCluster
from ocf.lazy_exports import lazy_exports
from ocf.testing.clock import VirtualClock
from ocf.testing.conditions import ConditionSeverity, lint_conditions
from ocf.testing.crash_matrix import crash_at_each_write
from ocf.testing.fake_controllers import fake_workload_controllers, roll_out
from ocf.testing.fault_cluster import FaultyCluster
from ocf.testing.goldens import assert_golden, serialize
from ocf.testing.idempotency import Reconcile, assert_quiet
from ocf.testing.local_webhooks import LocalWebhooks
from ocf.testing.matrix import MatrixCase, VersionMatrix
from ocf.testing.matrix_file import load_matrix
from ocf.testing.mutating_cluster import MutatingCluster
from ocf.testing.mutation_coverage import Firing, Fixture
from ocf.testing.operator_cluster import operator_cluster
from ocf.testing.owner_env import OwnerEnv
from ocf.testing.recording_cluster import RecordingCluster
from ocf.testing.round_trips import assert_round_trips
from ocf.testing.served_webhooks import serve_webhooks
from ocf.testing.simulated_autoscaling import assert_measures, simulate_autoscaler
from ocf.testing.simulated_process import disturbed_call, disturbed_client
from ocf.testing.snapshots import snapshot
from ocf.testing.virtual_time import LoopClock, run_in_virtual_time

if TYPE_CHECKING:
    from ocf.testing.http_stub import serving_http_stub
    from ocf.testing.schema_strategies import objects_of

__all__ = [
    "ConditionSeverity",
    "FaultyCluster",
    "Firing",
    "Fixture",
    "InterceptingCluster",
    "LocalWebhooks",
    "LoopClock",
    "MatrixCase",
    "MutatingCluster",
    "OwnerEnv",
    "Reconcile",
    "RecordingCluster",
    "VersionMatrix",
    "VirtualClock",
    "assert_golden",
    "assert_measures",
    "assert_quiet",
    "assert_round_trips",
    "crash_at_each_write",
    "disturbed_call",
    "disturbed_client",
    "fake_workload_controllers",
    "lint_conditions",
    "load_matrix",
    "objects_of",
    "operator_cluster",
    "roll_out",
    "run_in_virtual_time",
    "serialize",
    "serve_webhooks",
    "serving_http_stub",
    "simulate_autoscaler",
    "snapshot",
]

# They need hypothesis and an HTTP server.
__getattr__ = lazy_exports(__name__, {"objects_of": "schema_strategies", "serving_http_stub": "http_stub"})
