"""Writing roles and bindings requires what they grant, or a verb for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf import component
from ocf.cluster import ServiceAccount
from ocf.concepts import Data
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import clusterrole, clusterrolebinding, role, rolebinding
from ocf.runtime.rbac import PolicyRule, policy_rules, roles
from tests.runtime.rbac.test_rules import OWNER, SHOPS

if TYPE_CHECKING:
    from ocf.concepts import Resource

GROUP: Final = "rbac.authorization.k8s.io"
PODS: Final = {"apiGroups": [""], "resources": ["pods", "pods/log"], "verbs": ["get", "deletecollection"]}


def written(kind: str, **content: Any) -> Manifest:
    metadata = {"name": "reader"} | ({} if kind.startswith("Cluster") else {"namespace": "town"})
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": metadata, **content}


def binding(kind: str, role_kind: str, name: str) -> Resource:
    base = written(kind, roleRef={"apiGroup": GROUP, "kind": role_kind, "name": name})
    if kind.startswith("Cluster"):
        return clusterrolebinding.Builder(base).build()
    return rolebinding.Builder(base).build()


def needed(*resources: Resource, owner: ObjectKey = OWNER, **options: Any) -> set[PolicyRule]:
    builder = component.Builder("web", condition_type="WebReady")
    for resource in resources:
        builder.with_resource(resource, **options)
    return set(policy_rules([builder.build()], owner=owner, definitions=[SHOPS]))


def beyond(found: set[PolicyRule]) -> set[PolicyRule]:
    """Return what is not about the objects of the component and their owner."""
    usual = {"get", "create", "patch", "list", "watch", "update", "delete"}
    return {one for one in found if one.group != "example.com" and (one.group != GROUP or one.verb not in usual)}


def on_pods(*, namespaced: bool) -> set[PolicyRule]:
    pairs = [(resource, verb) for resource in PODS["resources"] for verb in PODS["verbs"]]
    return {PolicyRule("", resource, verb, namespaced=namespaced) for resource, verb in pairs}


def test_a_role_requires_what_it_grants() -> None:
    assert beyond(needed(role.Builder(written("Role", rules=[PODS])).build())) == on_pods(namespaced=True)
    cluster_role = clusterrole.Builder(written("ClusterRole", rules=[PODS])).build()
    assert beyond(needed(cluster_role)) == on_pods(namespaced=False)


def test_a_binding_to_a_role_of_the_components_requires_nothing_more() -> None:
    one = role.Builder(written("Role", rules=[PODS])).build()
    assert beyond(needed(one, binding("RoleBinding", "Role", "reader"))) == on_pods(namespaced=True)


@pytest.mark.parametrize(
    ("kind", "role_kind", "resource", "namespaced"),
    [
        pytest.param("RoleBinding", "Role", "roles", True, id="role"),
        pytest.param("RoleBinding", "ClusterRole", "clusterroles", True, id="cluster role in a namespace"),
        pytest.param("ClusterRoleBinding", "ClusterRole", "clusterroles", False, id="cluster role"),
    ],
)
def test_a_binding_to_another_role_requires_bind_on_it(
    kind: str, role_kind: str, resource: str, namespaced: bool
) -> None:
    found = beyond(needed(binding(kind, role_kind, "view")))
    assert found == {PolicyRule(GROUP, resource, "bind", "view", namespaced=namespaced)}


@pytest.mark.parametrize(
    "content",
    [
        pytest.param({"rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]}, id="not about resources"),
        pytest.param({"aggregationRule": {"clusterRoleSelectors": [{}]}}, id="aggregated"),
    ],
)
def test_privileges_that_are_not_known_require_escalate_and_bind(content: Manifest) -> None:
    cluster_role = clusterrole.Builder(written("ClusterRole", **content)).build()
    found = needed(cluster_role, binding("ClusterRoleBinding", "ClusterRole", "reader"))
    assert beyond(found) == {PolicyRule(GROUP, "clusterroles", verb, namespaced=False) for verb in ("escalate", "bind")}


def test_privileges_that_depend_on_data_require_escalate() -> None:
    cell = Data[str]("resource")

    def mutate(m: role.Mutator) -> None:
        m.edit_object_metadata(lambda meta: meta.ensure_label("of", cell.require()))

    one = role.Builder(written("Role", rules=[PODS])).with_mutation(role.Mutation("data", mutate)).build()
    assert beyond(needed(one)) == {PolicyRule(GROUP, "roles", "escalate")}


def test_a_role_that_is_only_read_or_deleted_requires_nothing() -> None:
    one = role.Builder(written("Role", rules=[PODS])).build()
    assert beyond(needed(one, read_only=True)) == set()
    assert beyond(needed(one, delete_when=True)) == set()


def test_any_verb_can_be_written_into_a_role() -> None:
    (found, _) = roles(on_pods(namespaced=True), name="op", account=ServiceAccount("op", "ops"), namespaces=["town"])
    expected = {"apiGroups": [""], "resources": ["pods", "pods/log"], "verbs": ["get", "deletecollection"]}
    assert found["rules"] == [expected]
