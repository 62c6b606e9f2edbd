"""Fixtures. A test that uses `env` runs on the embedded cluster and on a real API server with real controllers."""

from collections.abc import AsyncIterator, Iterator
from functools import cache

import pytest

from ocf.cluster import ApplyCache
from ocf.testing import RecordingCluster
from ocf.testing.envtest import ControllerName, ControlPlane
from ocf.testing.envtest.binaries import Programs
from ocf_server import EmbeddedCluster
from tests import support
from tests.examples.memcached.env import DEFINITIONS, Env, embedded_kubelet, real_kubelet, served

CONTROLLERS = (
    ControllerName.DEPLOYMENT,
    ControllerName.REPLICA_SET,
    ControllerName.GARBAGE_COLLECTOR,
    ControllerName.HORIZONTAL_POD_AUTOSCALER,
    ControllerName.DISRUPTION,
)


@pytest.fixture(scope="session")
def caches_plane(envtest_programs: Programs) -> Iterator[ControlPlane]:
    """Give a control plane that knows caches, and on which controllers run: one of its own, for they act everywhere."""
    with ControlPlane(envtest_programs) as plane:
        plane.install_crds(*DEFINITIONS)
        # The garbage collector looks for new kinds twice a minute, so it begins after them.
        with plane.controllers(*CONTROLLERS):
            yield plane


@pytest.fixture(params=["embedded", "envtest"])
async def env(request: pytest.FixtureRequest) -> AsyncIterator[Env]:
    """Return a cluster with the definition of caches, and a namespace."""
    if request.param == "embedded":
        yield await embedded_world()
        return
    plane: ControlPlane = request.getfixturevalue("caches_plane")
    with plane.namespace("caches-") as namespace:
        async with await plane.cluster() as server:
            await served(
                server, ("memcached.c5c3.io/v1alpha1", "Memcached"), ("monitoring.coreos.com/v1", "ServiceMonitor")
            )
            yield Env(RecordingCluster(server, apply_cache=ApplyCache()), namespace, real_kubelet)


@pytest.fixture
async def embedded() -> Env:
    """Return the embedded cluster only, for tests that do not depend on a server."""
    return await embedded_world()


@cache
def first_cluster() -> EmbeddedCluster:
    """Return the cluster with which all environments begin."""
    return EmbeddedCluster(namespaces=["caches"])


async def embedded_world() -> Env:
    return Env(await support.defined(first_cluster(), *DEFINITIONS), "caches", embedded_kubelet)
