"""Inside kopf, on a real API server, with the privileges that the declarations ask for and no others."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from ocf.cluster import ServiceAccount
from ocf.errors import NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.crds import CRDVersion, OwnerMetadata, Scope, crd
from ocf.runtime.operator import ManagerOptions, Operator, OwnerType
from ocf.runtime.rbac import kopf_rules, roles
from tests.support import eventually, until_granted

from .test_adapter import Shop, components_of, kopf_running

if TYPE_CHECKING:
    from ocf.cluster.client import ApiServerCluster
    from ocf.component import Component
    from ocf.testing.envtest import ControlPlane
    from ocf.testing.envtest.fixtures import Envtest

pytestmark = pytest.mark.filterwarnings("default")


@pytest.mark.promise("rights", runs="an operator inside kopf on a real API server")
@pytest.mark.parametrize("scope", list(Scope))
async def test_rights_suffice(
    envtest: Envtest,
    envtest_plane: ControlPlane,
    envtest_cluster: ApiServerCluster,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    *,
    scope: Scope,
) -> None:
    """Of the operator, of the process, and of kopf itself, which would warn."""
    namespace, admin = envtest.namespace, envtest_cluster
    # Tests share the server, and this kind is only used here.
    group = f"{scope.lower()}.inside-kopf.example.com"
    definition = crd(group, CRDVersion("v1", Shop), scope=scope)
    await admin.apply(definition, field_manager="admin")

    def components(owner: Shop) -> Component:
        return components_of(owner, namespace=namespace)

    operator: Operator[Any] = Operator(name="shops", owner=OwnerType.of(Shop, definition), components=components)
    every_state = [components(Shop(metadata=OwnerMetadata(name="any")))]
    options = ManagerOptions(listen=None, namespaces=[namespace])
    granted = operator.policy_rules(every_state) | options.policy_rules(operator) | kopf_rules(clusterwide=False)
    account = ServiceAccount("shops", namespace)
    for one in roles(granted, name=f"kopf-{namespace}", account=account, namespaces=[namespace]):
        await admin.create(one, field_manager="admin")
    user = f"system:serviceaccount:{namespace}:shops"
    await until_granted(admin, user, granted, namespace=namespace)
    kubeconfig = await asyncio.to_thread(envtest_plane.kubeconfig_for, user)
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    corner: Manifest = {
        "apiVersion": f"{group}/v1",
        "kind": "Shop",
        "metadata": {"name": "corner"} | ({"namespace": namespace} if scope is Scope.NAMESPACED else {}),
        "spec": {},
    }

    async def is_there(manifest: Manifest | None = None) -> bool:
        try:
            if manifest is not None:
                await admin.create(manifest, field_manager="admin")
            else:
                await admin.get(ObjectKey("v1", "ConfigMap", "corner-settings", namespace))
        except NotFoundError:
            return False
        return True

    await eventually(lambda: is_there(corner))
    async with kopf_running(operator, options=options, namespace=namespace):
        await eventually(is_there)
    said = caplog.text.lower()
    assert "permissions" not in said
    assert "forbidden" not in said
