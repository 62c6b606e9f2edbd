"""Imports of `ocf.testing` load only what is needed."""

import subprocess
import sys

from ocf.cluster import Cluster
from ocf.testing import FaultyCluster, InterceptingCluster, MutatingCluster, RecordingCluster
from ocf_server import EmbeddedCluster


def test_importing_it_loads_neither_pytest_nor_api_models() -> None:
    program = "import ocf.testing, sys; print({'pytest', '_pytest', 'kubernetes'} & sys.modules.keys() or 'none')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603 (ours)
    assert done.stdout.strip() == "none"


def test_every_wrapper_is_a_cluster_around_any_cluster() -> None:
    """The type checker verifies it; here the wrappers are nested."""
    inner: Cluster = EmbeddedCluster()
    for wrap in (InterceptingCluster, RecordingCluster):
        inner = wrap(inner)
    inner = MutatingCluster(inner, lambda _: None)
    inner = FaultyCluster(inner, [])
    assert inner.apply_cache is inner.apply_cache
