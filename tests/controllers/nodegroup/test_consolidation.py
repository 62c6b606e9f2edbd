"""Consolidation that fails buys ever more rarely: each attempt costs a machine for a while."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from ocf.cluster import Subresource
from ocf.errors import api_error
from ocf.objects import Manifest
from ocf.testing.hostile_cloud import HostileCloud
from tests.controllers.nodegroup.conftest import Env, run


def test_consolidation_whose_drains_fail_buys_at_most_once_an_hour(env: Env, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        await env.set_up(instanceSelection="Cheapest", scaleDownPolicy={"consolidate": True})
        await env.add_pod("big-0", cpu="7")
        await env.tick(6)
        await env.add_pod("web-0", cpu="900m")
        await env.tick(2)
        await env.remove_pods("big-0")
        create = env.cluster.create

        async def denies(manifest: Manifest, **named: Any) -> Manifest:
            if named.get("subresource") == Subresource.EVICTION:
                raise api_error("admission webhook denied it", code=403, reason="Forbidden")
            return await create(manifest, **named)

        monkeypatch.setattr(env.cluster, "create", denies)
        bought, known = [], len(env.cloud.requests)
        for _ in range(240):
            await env.tick(by=timedelta(minutes=1))
            if len(env.cloud.requests) > known:
                known = len(env.cloud.requests)
                bought.append(env.clock.now())
        assert len(bought) > 1
        assert all(later - earlier >= timedelta(hours=1) for earlier, later in pairwise(bought))

    run(scenario())


def test_consolidation_whose_nodes_do_not_come_buys_ever_more_rarely() -> None:
    env = Env(cloud=HostileCloud)
    cloud = env.provider
    assert isinstance(cloud, HostileCloud)

    async def scenario() -> None:
        await env.set_up(instanceSelection="Cheapest", scaleDownPolicy={"consolidate": True})
        await env.add_pod("big-0", cpu="7")
        await env.tick(6)
        await env.add_pod("web-0", cpu="900m")
        await env.tick(2)
        await env.remove_pods("big-0")
        cloud.joins_after = None
        bought, known = [], len(env.cloud.requests)
        for _ in range(16 * 12):
            await env.tick(by=timedelta(minutes=5))
            if len(env.cloud.requests) > known:
                known = len(env.cloud.requests)
                bought.append(env.clock.now())
        waits = [later - earlier for earlier, later in pairwise(bought)]
        # From the end of the time to boot on: 1, 2, 4 hours.
        assert [round(wait / timedelta(hours=1)) for wait in waits[:3]] == [1, 2, 4]
        assert all(wait >= timedelta(hours=1) for wait in waits)
        assert await env.waiting() == []
        # A pod that waits is worth an attempt much earlier.
        cloud.joins_after = timedelta(0)
        await env.add_pod("web-1", cpu="7500m")
        await env.tick(20, by=timedelta(minutes=5))
        assert await env.waiting() == []

    run(scenario())
