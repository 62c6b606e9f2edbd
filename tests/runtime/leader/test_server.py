"""Two processes and a real API server: one leads, it is killed, and the other follows."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE
from contextlib import AsyncExitStack, suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

import pytest

from ocf.cluster import ServiceAccount
from ocf.objects import ObjectKey
from ocf.runtime.leader import Timing, lead
from ocf.runtime.rbac import lease_rules, roles
from tests.support import eventually

if TYPE_CHECKING:
    from ocf.cluster.client import ApiServerCluster
    from ocf.objects import Manifest
    from ocf.testing.envtest import ControlPlane
    from ocf.testing.envtest.fixtures import Envtest

QUICK: Final = Timing(
    lease=timedelta(seconds=8), renew_deadline=timedelta(seconds=6), retry_period=timedelta(seconds=0.3)
)
PROGRAM: Final = """
import asyncio, sys
from datetime import timedelta
from pathlib import Path
from ocf.cluster.client import ApiServerCluster
from ocf.runtime.leader import Timing, lead

async def main(kubeconfig, namespace, identity):
    lease, deadline, period = timedelta(seconds=8), timedelta(seconds=6), timedelta(seconds=0.3)
    timing = Timing(lease=lease, renew_deadline=deadline, retry_period=period)
    async with await ApiServerCluster.connect(Path(kubeconfig)) as cluster:
        async with lead(cluster, "shops", namespace=namespace, identity=identity, timing=timing):
            print("leading", flush=True)
            await asyncio.sleep(3600)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.promise("one-leader", runs="two processes on a real API server, one of which is killed")
async def test_a_leader_is_killed(
    envtest: Envtest, envtest_plane: ControlPlane, envtest_cluster: ApiServerCluster
) -> None:
    """The other process leads then; the rules of a lease are the only ones that it needs."""
    user = f"system:serviceaccount:{envtest.namespace}:operator"
    granted = lease_rules("shops", envtest.namespace)
    for one in roles(granted, name="lead", account=ServiceAccount("operator", envtest.namespace)):
        await envtest_cluster.create(one, field_manager="admin")
    kubeconfig = await asyncio.to_thread(envtest_plane.kubeconfig_for, user)
    key = ObjectKey("coordination.k8s.io/v1", "Lease", "shops", envtest.namespace)

    arguments = [sys.executable, "-c", PROGRAM, str(kubeconfig), envtest.namespace, "first"]
    process = await asyncio.create_subprocess_exec(*arguments, stdout=PIPE)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(process.wait)
        stack.callback(_kill, process)
        assert process.stdout is not None
        assert await process.stdout.readline() == b"leading\n"
        held = (await envtest_cluster.get(key))["spec"]
        assert (held["holderIdentity"], held["leaseTransitions"]) == ("first", 0)
        cluster = await stack.enter_async_context(await envtest_plane.cluster(kubeconfig))
        follower = lead(cluster, "shops", namespace=envtest.namespace, identity="second", timing=QUICK)
        following = asyncio.create_task(stack.enter_async_context(follower))
        await eventually(lambda: envtest_cluster.get(key), lambda live: held_for(live["spec"]) > QUICK.lease)
        assert not following.done(), "it is renewed"
        process.kill()
        leadership = await following

        assert leadership.identity == "second"
        held = (await envtest_cluster.get(key))["spec"]
        assert (held["holderIdentity"], held["leaseTransitions"]) == ("second", 1)
    assert (await envtest_cluster.get(key))["spec"]["holderIdentity"] == ""


def held_for(spec: Manifest) -> timedelta:
    """Return how long the holder of a lease has had it when it last renewed it."""
    return datetime.fromisoformat(spec["renewTime"]) - datetime.fromisoformat(spec["acquireTime"])


def _kill(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        process.kill()
