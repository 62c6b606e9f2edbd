"""Takeovers before an apply that the API server rejects."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ocf.cluster import Verb
from ocf.component import Component, Conflicts
from ocf.errors import ForbiddenError, ReconcileError
from ocf.objects import Manifest, copy_json
from ocf.primitives import deployment
from ocf.testing import FaultyCluster, faults
from tests.component.apply.test_takeover import by_client, of, reconcile

if TYPE_CHECKING:
    from ocf.cluster import Cluster
    from tests.component.conftest import Env


class TestRejected:
    """An apply that the API server rejects whatever the takeover changes moves no field.

    https://github.com/fluxcd/pkg/pull/1276: a dry run before the takeover keeps it transactional, and must not stand in
    the way where only the takeover makes the object valid, which `TestWorkloads` shows.
    """

    @staticmethod
    async def refused(env: Env, made: Component, cluster: Cluster | None = None) -> None:
        before = await env.cluster.get(env.web)
        events: list[str] = []
        for _ in range(2):
            with pytest.raises(ReconcileError):
                events += (await reconcile(env, made, former=("former",), cluster=cluster)).notes
        assert await env.cluster.get(env.web) == before
        assert events == []

    @pytest.mark.promise("former-writers", runs="3 applies that stay rejected after a takeover")
    async def test_a_field_that_cannot_be_changed(self, env: Env, web_base: Manifest) -> None:
        theirs = copy_json(web_base)
        theirs["spec"]["selector"] = {"matchLabels": {"app": "old"}}
        theirs["spec"]["template"]["metadata"]["labels"] = {"app": "old"}
        await by_client(env, theirs, operation="Update")
        await self.refused(env, of(deployment.Builder(web_base)))

    @pytest.mark.promise("former-writers")
    async def test_what_a_webhook_denies(self, env: Env, web_base: Manifest) -> None:
        await by_client(env, web_base, operation="Update")
        denied = ForbiddenError("admission webhook denied the request", code=403, reason="Forbidden")
        fault = faults.rejected(denied, kind="Deployment", verbs=[Verb.APPLY], times=None)
        web_base["spec"]["replicas"] = 2
        await self.refused(env, of(deployment.Builder(web_base)), FaultyCluster(env.cluster, [fault]))

    @pytest.mark.promise("former-writers")
    async def test_a_conflict_with_a_manager_that_is_not_named(self, env: Env, web_base: Manifest) -> None:
        await by_client(env, web_base, operation="Update")
        await env.cluster.apply(replicas(5), field_manager="scaler", force=True)
        made = of(
            deployment.Builder({**web_base, "spec": {**web_base["spec"], "replicas": 2}}), on_conflict=Conflicts.FAIL
        )
        await self.refused(env, made)


def replicas(count: int) -> Manifest:
    metadata = {"name": "web", "namespace": "shop"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {"replicas": count}}
