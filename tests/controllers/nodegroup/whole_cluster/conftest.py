"""Control plane with all its programs, audited, and with the rights of our controllers installed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from ocf.controllers.hpa import Mode
from ocf.controllers.hpa.manifests import HpaInstallation
from ocf.controllers.hpa.manifests import installation_manifests as hpa_manifests
from ocf.controllers.nodegroup.definitions import node_definition, node_group_definition
from ocf.controllers.nodegroup.manifests import NodeGroupInstallation, installation_manifests
from ocf.objects import Manifest
from ocf.runtime.rbac import PolicyRule
from ocf.testing.envtest import ControllerName, ControlPlane
from ocf.testing.envtest.binaries import Programs
from ocf.testing.plugin import RunControllers, RunKwok, RunScheduler
from tests.controllers.nodegroup.whole_cluster.audit import AuditLog
from tests.controllers.nodegroup.whole_cluster.environment import HPA_USER, NODE_GROUP_USER, SYSTEM, Environment
from tests.controllers.nodegroup.whole_cluster.kwok_stages import stages
from tests.controllers.nodegroup.whole_cluster.process import SHIFT
from tests.controllers.nodegroup.whole_cluster.shifted_clock import ShiftedClock

CONTROLLERS: Final = (
    ControllerName.DEPLOYMENT,
    ControllerName.REPLICA_SET,
    ControllerName.DISRUPTION,
    ControllerName.GARBAGE_COLLECTOR,
    ControllerName.NODE_LIFECYCLE,
    "taint-eviction-controller",
    "pod-garbage-collector-controller",
)
# A node fails when a test says so, not when a busy machine renews its lease late.
NODE_GRACE: Final = {"node-monitor-grace-period": "1h"}
ENFORCED: Final = {"enable-admission-plugins": "OwnerReferencesPermissionEnforcement"}
QUICK: Final = {"podMaxBackoffSeconds": 1, "podInitialBackoffSeconds": 1}


def installation() -> list[Manifest]:
    """Return what installs both controllers, but for the Deployments: the tests run the processes."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}}
    wanted = NodeGroupInstallation(
        namespace=SYSTEM,
        image="ocf",
        command=["ocf"],
        provider_rules=frozenset({PolicyRule("", "nodes", "create")}),
    )
    hpa = HpaInstallation(mode=Mode.REPLACE, namespace=SYSTEM, image="ocf")
    found = [namespace, *installation_manifests(wanted), *hpa_manifests(hpa)]
    return [each for each in found if each["kind"] not in ("Deployment", "CustomResourceDefinition")]


@pytest.fixture
async def env(
    envtest_programs: Programs,
    envtest_controllers: RunControllers,  # noqa: ARG001 (skips without its program)
    envtest_scheduler: RunScheduler,  # noqa: ARG001 (likewise)
    envtest_kwok: RunKwok,  # noqa: ARG001 (likewise)
    tmp_path: Path,
) -> AsyncIterator[Environment]:
    """Give a control plane of its own: its scheduler and controllers act in every namespace."""
    audit = AuditLog(tmp_path, [HPA_USER, NODE_GROUP_USER])
    with ExitStack() as stack:
        plane = stack.enter_context(ControlPlane(envtest_programs, server_arguments={**audit.flags, **ENFORCED}))
        plane.install_crds(node_group_definition(), node_definition())
        items = {"apiVersion": "v1", "kind": "List", "items": installation()}
        plane.kubectl("apply", "--filename=-", stdin=json.dumps(items))
        stack.enter_context(plane.controllers(*CONTROLLERS, arguments=NODE_GRACE))
        stack.enter_context(plane.scheduler(QUICK))
        stack.enter_context(plane.kwok(stages()))
        namespace = stack.enter_context(plane.namespace("nodes-"))
        async with await plane.cluster() as cluster:
            found = Environment(plane, cluster, ShiftedClock(tmp_path / SHIFT), namespace=namespace, audit=audit)
            async with found.recorder.recording():
                yield found
