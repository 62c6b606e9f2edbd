"""For people who test their operators: a clock, faults, crashes, proofs of quiet, goldens, a linter of conditions.

Whatever wraps a cluster wraps any cluster. The ways things go wrong are a module of their own, `ocf.testing.faults`,
and so are the fixtures for pytest, `ocf.testing.plugin`: nothing else in this room needs pytest.
"""

from ocf.cluster.interceptor import InterceptingCluster
from ocf.testing.clock import VirtualClock
from ocf.testing.conditions import Finding, Rule, Severity, lint_conditions
from ocf.testing.crash_matrix import DisturbanceReport, DisturbedWrite, disturb_each_write
from ocf.testing.fake_controllers import playing_rollouts, rolled_out
from ocf.testing.fault_cluster import FaultyCluster, Injection
from ocf.testing.faults import Fault
from ocf.testing.goldens import Subject, assert_golden, serialize
from ocf.testing.idempotency import Reconcile, assert_quiet
from ocf.testing.local_webhooks import admitting
from ocf.testing.matrix import MatrixCase, VersionMatrix
from ocf.testing.matrix_file import load_matrix
from ocf.testing.mutating_cluster import RewritingCluster
from ocf.testing.mutation_coverage import Firing, Fixture, Regime
from ocf.testing.recording_cluster import RecordingCluster
from ocf.testing.simulated_process import Disturbance, SimulatedCrash
from ocf.testing.snapshots import snapshot
from ocf.testing.virtual_time import LoopClock, VirtualLoop, run_in_virtual_time

__all__ = [
    "Disturbance",
    "DisturbanceReport",
    "DisturbedWrite",
    "Fault",
    "FaultyCluster",
    "Finding",
    "Firing",
    "Fixture",
    "Injection",
    "InterceptingCluster",
    "LoopClock",
    "MatrixCase",
    "Reconcile",
    "RecordingCluster",
    "Regime",
    "RewritingCluster",
    "Rule",
    "Severity",
    "SimulatedCrash",
    "Subject",
    "VersionMatrix",
    "VirtualClock",
    "VirtualLoop",
    "admitting",
    "assert_golden",
    "assert_quiet",
    "disturb_each_write",
    "lint_conditions",
    "load_matrix",
    "playing_rollouts",
    "rolled_out",
    "run_in_virtual_time",
    "serialize",
    "snapshot",
]
