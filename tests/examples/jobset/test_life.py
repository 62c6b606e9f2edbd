"""The operator of JobSets as a process on the embedded server and on a real one; the tests play the Job controller."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

from examples.jobset.model import JobSet
from examples.jobset.operator import operator
from ocf.cli.app import app
from ocf.cluster import (
    Cluster,
    DeleteOptions,
    ListOptions,
    PatchOptions,
    PatchType,
    Propagation,
    ServiceAccount,
    Subresource,
)
from ocf.concepts import SystemClock
from ocf.errors import NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.documents import dump_document, load_documents
from ocf.runtime.operator import ManagerOptions, running
from ocf.testing.envtest import ControlPlane
from ocf_server import EmbeddedCluster
from tests.examples.memcached.env import served
from tests.support import eventually, until_granted

POD: Final = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}
TEMPLATE: Final = {"spec": {"template": {"spec": POD}}}
NAMES: Final = ["set-body-0", "set-body-1", "set-head-0"]
OPTIONS: Final = PatchOptions(patch_type=PatchType.MERGE, field_manager="user")
STATUS: Final = PatchOptions(patch_type=PatchType.MERGE, field_manager="job", subresource=Subresource.STATUS)
ACCOUNT: Final = ServiceAccount(operator.name, operator.name)
START: Final = "2026-01-01T00:00:00Z"


@dataclass
class Env:
    """A cluster with the operator, and what users and the Job controller do."""

    cluster: Cluster
    namespace: str

    def key(self, kind: str, name: str = "set") -> ObjectKey:
        versions = {"Job": "batch/v1", "JobSet": JobSet.api_version}
        return ObjectKey(versions.get(kind, "v1"), kind, name, self.namespace)

    async def create(self, name: str = "set", **spec: Any) -> None:
        replicated = [{"name": "head", "template": TEMPLATE}, {"name": "body", "replicas": 2, "template": TEMPLATE}]
        metadata = {"name": name, "namespace": self.namespace}
        manifest = {"apiVersion": JobSet.api_version, "kind": JobSet.kind, "metadata": metadata}
        await self.cluster.create(manifest | {"spec": {"replicatedJobs": replicated, **spec}}, field_manager="user")

    async def change(self, **spec: Any) -> None:
        await self.cluster.patch(self.key("JobSet"), {"spec": spec}, OPTIONS)

    async def read(self) -> Manifest:
        return await self.cluster.get(self.key("JobSet"))

    async def jobs(self) -> list[Manifest]:
        return list((await self.cluster.list("batch/v1", "Job", ListOptions(namespace=self.namespace))).items)

    async def until_jobs(self, holds: Callable[[list[Manifest]], Any]) -> list[Manifest]:
        return await eventually(self.jobs, holds)

    async def until_made(self) -> list[Manifest]:
        return await self.until_jobs(lambda found: len(found) == len(NAMES))

    async def report(self, name: str, **status: Any) -> None:
        await self.cluster.patch(self.key("Job", name), {"status": status}, STATUS)

    async def fail(self, name: str) -> None:
        target = {"type": "FailureTarget", "status": "True"}
        await self.report(name, startTime=START, conditions=[target, {"type": "Failed", "status": "True"}])

    async def add_pod(self, name: str) -> None:
        """Give a Job something that is held, and with it the Job if it is deleted in the foreground."""
        job = await self.cluster.get(self.key("Job", name))
        reference = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": job["metadata"]["uid"]}
        metadata = {
            "name": name,
            "namespace": self.namespace,
            "finalizers": ["example.com/held"],
            "ownerReferences": [{**reference, "blockOwnerDeletion": True}],
        }
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        await self.cluster.create(manifest, field_manager="user")

    async def collect(self, *but: str) -> list[Manifest]:
        """Remove Jobs that are deleted in the foreground, as the garbage collector does once their pods are gone."""
        for one in await self.jobs():
            if "foregroundDeletion" in one["metadata"].get("finalizers", ()) and one["metadata"]["name"] not in but:
                await self.cluster.patch(ObjectKey.of(one), {"metadata": {"finalizers": None}}, OPTIONS)
        return await self.jobs()


@asynccontextmanager
async def on_embedded() -> AsyncIterator[Env]:
    cluster = EmbeddedCluster(namespaces=["lab"], authorization=True)
    await cluster.apply(JobSet.definition(), field_manager="user")
    yield Env(cluster, "lab")
    assert [request for request in cluster.requests if request.code == 403] == []


@asynccontextmanager
async def on_real(plane: ControlPlane) -> AsyncIterator[Env]:
    plane.install_crds(JobSet.definition())
    with plane.namespace("jobset-") as namespace:
        async with await plane.cluster() as cluster:
            await served(cluster, (JobSet.api_version, JobSet.kind))
            yield Env(cluster, namespace)


async def grant(env: Env, folder: Path, options: ManagerOptions) -> None:
    """Apply the roles that `ocf manifests` generates for the namespace."""
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    sample: Manifest = {"apiVersion": JobSet.api_version, "kind": JobSet.kind, "metadata": {"name": "set"}}
    sample["metadata"]["namespace"] = env.namespace
    sample["spec"] = {
        "replicatedJobs": [{"name": "head", "template": TEMPLATE}],
        "volumeClaimPolicies": [{"templates": [claim]}],
    }
    (folder / "jobset.yaml").write_text(dump_document(sample), encoding="utf-8")
    words = ["manifests", "examples.jobset", "--directory", str(folder / "deploy")]
    words += ["--owner", str(folder / "jobset.yaml"), "--watch-namespace", env.namespace]
    result = await asyncio.to_thread(CliRunner().invoke, app, words)
    assert result.exit_code == 0, result.output
    written = (folder / "deploy" / "base" / "roles.yaml").read_text(encoding="utf-8")
    granted = [one for one in load_documents(written) if one["metadata"]["namespace"] == env.namespace]
    for manifest in granted:
        await env.cluster.create(manifest, field_manager="user")
    rules = operator.policy_rules([]) | options.policy_rules(operator)
    known = {one for one in rules if one.namespaced and one.verb == "list"}
    await until_granted(env.cluster, ACCOUNT.username, known, namespace=env.namespace)


@pytest.fixture(params=["embedded", "envtest"])
async def env(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Env]:
    """Return a cluster on which the operator runs with the rights of its role."""
    place = on_embedded() if request.param == "embedded" else on_real(request.getfixturevalue("envtest_plane"))
    async with place as found:
        options = ManagerOptions(listen=None, clock=SystemClock(), namespaces=[found.namespace])
        await grant(found, tmp_path, options)
        async with running(found.cluster.acting_as(ACCOUNT), operator, options=options):
            yield found


def attempts_of(jobs: list[Manifest]) -> dict[str, str]:
    labels = {one["metadata"]["name"]: one["metadata"]["labels"] for one in jobs}
    return {name: of["jobset.sigs.k8s.io/restart-attempt"] for name, of in labels.items()}


def condition(manifest: Manifest, name: str) -> str:
    found = manifest.get("status", {}).get("conditions", ())
    return next((str(one["status"]) for one in found if one["type"] == name), "")


async def test_a_restart_waits_until_the_pods_of_the_former_jobs_are_gone(env: Env) -> None:
    """Of https://github.com/kubernetes-sigs/jobset/issues/392: a Job that is deleted in the background leaves pods."""
    await env.create(failurePolicy={"maxRestarts": 1})
    await env.until_made()
    await env.add_pod("set-body-0")
    await env.fail("set-body-0")
    found = await eventually(env.read, lambda found: found.get("status", {}).get("restarts") == 1)
    assert condition(found, "RestartingJobSet") == "True"
    attempts = {"set-body-0": "0", "set-body-1": "1", "set-head-0": "1"}
    jobs = await eventually(lambda: env.collect("set-body-0"), lambda found: attempts_of(found) == attempts)
    assert jobs[0]["metadata"]["finalizers"] == ["foregroundDeletion"]
    await env.cluster.patch(env.key("ConfigMap", "set-body-0"), {"metadata": {"finalizers": None}}, OPTIONS)
    await eventually(env.collect, lambda found: set(attempts_of(found).values()) == {"1"} and len(found) == 3)
    await env.fail("set-head-0")
    await eventually(env.read, lambda found: condition(found, "Failed") == "True")


async def test_jobs_that_still_run_are_deleted_with_the_end_whatever_the_ttl(env: Env) -> None:
    """Of https://github.com/kubernetes-sigs/jobset/issues/666."""
    await env.create(ttlSecondsAfterFinished=3600)
    await env.until_made()
    await env.fail("set-body-0")
    await eventually(env.read, lambda found: found.get("status", {}).get("terminalState") == "Failed")
    await eventually(env.collect, lambda found: [one["metadata"]["name"] for one in found] == ["set-body-0"])


async def test_a_jobset_goes_when_its_time_is_over(env: Env) -> None:
    await env.create(ttlSecondsAfterFinished=0)
    await env.until_made()
    await env.fail("set-body-0")

    async def is_ending() -> bool:
        try:
            return "deletionTimestamp" in (await env.read())["metadata"]
        except NotFoundError:
            return True

    await eventually(is_ending)


async def test_a_suspension_and_a_change_of_the_pod_template_may_come_in_one_edit(env: Env) -> None:
    """Of https://github.com/kubernetes-sigs/kueue/issues/2691: a queue withdraws its node selector as it suspends."""
    await env.create()
    await env.until_made()
    for name in NAMES:
        await env.report(name, startTime=START, active=1, ready=1)
    changed = {"spec": {"template": {"spec": {**POD, "nodeSelector": {"zone": "b"}}}}}
    replicated = [{"name": "head", "template": changed}, {"name": "body", "replicas": 2, "template": changed}]
    await env.change(suspend=True, replicatedJobs=replicated)
    await env.until_jobs(lambda found: all(one["spec"]["suspend"] for one in found))
    for name in NAMES:
        # Since Kubernetes 1.35 the Job controller takes the start time back with the last pod.
        stands = [{"type": "Suspended", "status": "True"}]
        await env.report(name, startTime=None, active=0, ready=0, conditions=stands)
    await env.until_jobs(lambda found: all("nodeSelector" in one["spec"]["template"]["spec"] for one in found))
    await env.change(suspend=False)
    await env.until_jobs(lambda found: not any(one["spec"]["suspend"] for one in found))
    await eventually(env.read, lambda found: condition(found, "Suspended") == "False")


async def test_a_jobset_that_is_deleted_in_the_foreground_gets_no_further_jobs(env: Env) -> None:
    """Of https://github.com/kubernetes-sigs/jobset/pull/562: what was deleted was made again and again."""
    await env.create()
    await env.until_made()
    await env.cluster.patch(env.key("JobSet"), {"metadata": {"finalizers": ["example.com/hold"]}}, OPTIONS)
    await env.cluster.delete(env.key("JobSet"), DeleteOptions(propagation=Propagation.BACKGROUND))
    await env.cluster.delete(env.key("Job", "set-head-0"), DeleteOptions(propagation=Propagation.BACKGROUND))
    await env.create("other", replicatedJobs=[])
    # The operator has seen the deletion when it has reconciled what came after it.
    await eventually(lambda: env.cluster.get(env.key("Service", "other")), ignore=(NotFoundError,))
    assert [one["metadata"]["name"] for one in await env.jobs() if "deletionTimestamp" not in one["metadata"]] in (
        NAMES[:2],
        [],
    )


async def test_objects_of_others_are_used_and_not_changed(env: Env) -> None:
    """Of https://github.com/kubernetes-sigs/jobset/issues/18: a Service may be shared, a Job of that name stays."""
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "set-head-0", "namespace": env.namespace}}
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x", "controller": True}
    job["metadata"]["ownerReferences"] = [reference]  # type: ignore[index]
    await env.cluster.create({**job, "spec": TEMPLATE["spec"]}, field_manager="user")
    service = {"metadata": {"name": "set", "namespace": env.namespace}, "spec": {"ports": [{"port": 80}]}}
    await env.cluster.create({"apiVersion": "v1", "kind": "Service", **service}, field_manager="user")
    await env.create()
    found = await env.until_jobs(lambda found: len(found) == 3)
    (foreign,) = [one for one in found if one["metadata"]["name"] == "set-head-0"]
    assert foreign["metadata"]["ownerReferences"] == [reference]
    live = await env.cluster.get(env.key("Service"))
    assert ("ownerReferences" in live["metadata"], live["spec"]["ports"][0]["port"]) == (False, 80)
