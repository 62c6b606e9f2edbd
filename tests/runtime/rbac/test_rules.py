"""Which privileges components need, and how they are written."""

from __future__ import annotations

from typing import Any

import pytest

from ocf import component
from ocf.cluster import ServiceAccount
from ocf.component import Component, DeletionOrder
from ocf.errors import ConfigError
from ocf.feature import BooleanGate
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import configmap, deployment, hpa, role, rolebinding, secret
from ocf.runtime.operator import Operator, OwnerType
from ocf.runtime.rbac import PolicyRule, custom_definitions, lease_rules, policy_rules, roles
from ocf_server import EmbeddedCluster

OWNER = ObjectKey("example.com/v1", "Shop", "corner", "town")
SHOPS: Manifest = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "shops.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Shop", "plural": "shops"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
SETTINGS = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "town"}}
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "ca", "namespace": "town"}}
AUTOSCALER = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "web", "namespace": "town"},
    "spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
}


def of_settings(**options: Any) -> component.Builder:
    resource = configmap.Builder(SETTINGS).build()
    return component.Builder("web", condition_type="WebReady").with_resource(resource, **options)


def of_web() -> component.Builder:
    metadata = {"name": "web", "namespace": "town"}
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {"labels": {"app": "web"}}}}
    base = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
    return component.Builder("web", condition_type="WebReady").with_resource(deployment.Builder(base))


def verbs(found: frozenset[PolicyRule], resource: str) -> set[str]:
    return {one.verb for one in found if one.resource == resource}


def of(*components: Component, **more: Any) -> frozenset[PolicyRule]:
    return policy_rules(components, owner=OWNER, definitions=[SHOPS], **more)


@pytest.mark.parametrize(
    ("built", "wanted"),
    [
        pytest.param(of_settings(), {"get", "create", "patch"}, id="managed"),
        pytest.param(of_settings(read_only=True), {"get"}, id="read-only"),
        pytest.param(of_settings(delete_when=True), {"get", "delete"}, id="deleted"),
        pytest.param(of_settings(delete_when=False), {"get", "create", "patch", "delete"}, id="may be deleted"),
        pytest.param(of_settings(gated_by=BooleanGate(False)), {"get", "create", "patch", "delete"}, id="gate closed"),
        pytest.param(of_settings(gated_by=BooleanGate(True)), {"get", "create", "patch", "delete"}, id="gate open"),
        pytest.param(of_settings(unowned=True), {"get", "create", "patch"}, id="unowned"),
        pytest.param(of_settings(orphan_when=True), {"get", "patch"}, id="orphaned"),
        pytest.param(of_settings(orphan_when=False), {"get", "create", "patch"}, id="may be orphaned"),
        pytest.param(of_settings().with_prune(), {"get", "create", "patch", "list", "delete"}, id="pruned"),
        pytest.param(
            component.Builder("web", condition_type="Ready").with_prune(kinds=[("v1", "ConfigMap")]),
            {"get", "list", "patch", "delete"},
            id="pruned to nothing",
        ),
        pytest.param(
            of_settings().with_feature_gate(BooleanGate(True)), {"get", "create", "patch", "delete"}, id="gated"
        ),
    ],
)
def test_what_becomes_of_a_resource_decides(built: component.Builder, wanted: set[str]) -> None:
    found = of(built.build())

    assert verbs(found, "configmaps") == wanted
    assert verbs(found, "shops") == {"get", "list", "watch"}
    assert verbs(found, "shops/status") == {"update"}


def test_a_copy_may_lose_its_label_also_if_it_is_only_deleted() -> None:
    found = of(of_settings(unowned=True, delete_with_owner=True, delete_when=True).build())
    assert verbs(found, "configmaps") == {"get", "list", "patch", "delete"}
    assert "patch" in verbs(found, "shops")


@pytest.mark.parametrize("resource", ["pods", "events"])
@pytest.mark.parametrize(
    ("built", "wanted"),
    [
        pytest.param(of_web().with_pod_causes(), {"list"}, id="for a workload"),
        pytest.param(of_web(), set(), id="not without the option"),
        pytest.param(of_settings().with_pod_causes(), set(), id="not without a workload"),
    ],
)
def test_what_pods_report_is_listed(built: component.Builder, wanted: set[str], resource: str) -> None:
    assert verbs(of(built.build(), cached=True), resource) == wanted


def test_what_suspending_deletes_may_be_deleted() -> None:
    resource = hpa.Builder(AUTOSCALER).build()
    built = component.Builder("web", condition_type="WebReady").with_resource(resource).build()

    assert "delete" in verbs(of(built), "horizontalpodautoscalers")


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        pytest.param({"writes": "create-only"}, {"get", "create", "patch"}, id="only created"),
        pytest.param({"set_once": ["data.a"]}, {"get", "create", "patch"}, id="set once"),
    ],
)
def test_rights_follow_what_is_written(options: dict[str, Any], wanted: set[str]) -> None:
    assert verbs(of(of_settings(**options).build()), "configmaps") == wanted


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        pytest.param(rolebinding, ("roles", "bind"), id="a binding"),
        pytest.param(role, ("roles", "escalate"), id="a role"),
    ],
)
def test_a_change_of_what_others_grant_needs_the_right_to_grant_it(kind: Any, wanted: tuple[str, str]) -> None:
    """The API server checks each change of a role or a binding, also of its labels."""
    labels = kind.Builder({"metadata": {"name": "a", "namespace": "shop", "labels": {"b": "c"}}})
    built = (
        component.Builder("web", condition_type="WebReady")
        .with_resource(labels, writes=component.Writes.UPDATE_ONLY)
        .build()
    )

    assert wanted in {(one.resource, one.verb) for one in of(built)}


@pytest.mark.parametrize("writes", ["create-only", "update-only"])
def test_what_a_suspension_leaves_needs_no_delete(writes: Any) -> None:
    resource = hpa.Builder(AUTOSCALER).build()
    built = component.Builder("web", condition_type="WebReady").with_resource(resource, writes=writes).build()

    assert "delete" not in verbs(of(built), "horizontalpodautoscalers")


def test_components_add_up() -> None:
    both = of(of_settings(read_only=True).build(), of_settings(delete_when=True).build())

    assert verbs(both, "configmaps") == {"get", "delete"}


def test_a_cache_lists_and_watches_what_it_reads() -> None:
    assert verbs(of(of_settings(read_only=True).build(), cached=True), "configmaps") == {"get", "list", "watch"}


def test_where_owner_references_are_enforced_the_finalizers_are_ours() -> None:
    """An account that sets or changes an owner reference must be allowed to delete the object."""
    found = of(of_settings().build(), enforced=True)

    assert verbs(found, "shops/finalizers") == {"update"}
    assert "delete" in verbs(found, "configmaps")
    assert "delete" in verbs(of(of_settings(orphan_when=True).build(), enforced=True), "configmaps")
    assert "delete" not in verbs(of(of_settings(unowned=True).build(), enforced=True), "configmaps")


def test_fixed_names_are_named_except_in_lists() -> None:
    found = of(of_settings().build(), fixed=True, cached=True)

    names = {one.verb: one.name for one in found if one.resource == "configmaps"}
    assert names == {"get": "settings", "create": "settings", "patch": "settings", "list": "", "watch": ""}


def test_what_pruning_deletes_has_any_name() -> None:
    found = of(of_settings().with_prune().build(), of_settings(delete_when=True).build(), fixed=True)

    assert [one.name for one in found if (one.resource, one.verb) == ("configmaps", "delete")] == [""]


class TestDeletion:
    """An operator with `on_delete` sets a finalizer, which is a patch of the owner."""

    @pytest.mark.parametrize(
        ("options", "wanted"),
        [
            pytest.param({"writes": "update-only"}, {"get", "patch", "list"}, id="fields of another writer"),
            pytest.param(
                {"writes": "update-only", "gated_by": BooleanGate(True)}, {"get", "patch", "list"}, id="gated fields"
            ),
            pytest.param(
                {"unowned": True, "delete_with_owner": True},
                {"get", "create", "patch", "list", "delete"},
                id="a copy",
            ),
        ],
    )
    @pytest.mark.parametrize("prune", [False, True])
    def test_an_object_that_is_marked_for_its_owner_needs_a_finalizer(
        self, options: Any, wanted: set[str], *, prune: bool
    ) -> None:
        builder = of_settings(**options)
        found = of((builder.with_prune() if prune else builder).build())
        assert verbs(found, "configmaps") == wanted
        assert "patch" in verbs(found, "shops")

    def test_a_finalizer_is_a_patch_of_the_owner(self) -> None:
        found = of(of_settings().build(), deletion_order=DeletionOrder.EXTERNAL_FIRST)

        assert verbs(found, "shops") == {"get", "list", "watch", "patch"}
        assert verbs(found, "configmaps") == {"get", "create", "patch"}

    def test_components_first_lists_and_deletes_what_they_make(self) -> None:
        found = of(of_settings().build(), deletion_order=DeletionOrder.COMPONENTS_FIRST, fixed=True)

        assert verbs(found, "configmaps") == {"get", "create", "patch", "list", "delete"}
        assert [one.name for one in found if (one.resource, one.verb) == ("configmaps", "delete")] == [""]

    @pytest.mark.parametrize("options", [{"unowned": True}, {"read_only": True}, {"orphan_when": True}])
    def test_components_first_deletes_nothing_else(self, options: dict[str, Any]) -> None:
        found = of(of_settings(**options).build(), deletion_order=DeletionOrder.COMPONENTS_FIRST)

        assert "delete" not in verbs(found, "configmaps")


def test_the_status_is_written_where_the_kind_holds_it() -> None:
    """In the object itself without the subresource, and nowhere for a built-in kind without a status."""
    spec = SHOPS["spec"]
    (version,) = spec["versions"]
    plain = {**SHOPS, "spec": {**spec, "versions": [{**version, "subresources": {}}]}}
    older = {**SHOPS, "spec": {**spec, "versions": [{**version, "name": "v0", "subresources": {}}, version]}}
    nothing: set[str] = set()
    for definition, of_object, of_status in (
        (SHOPS, nothing, {"update"}),
        (plain, {"patch"}, nothing),
        (older, nothing, {"update"}),
    ):
        found = policy_rules([], owner=OWNER, definitions=[definition])
        assert verbs(found, "shops") == {"get", "list", "watch", *of_object}
        assert verbs(found, "shops/status") == of_status
    for key, of_status in ((ObjectKey("v1", "Secret", "a", "b"), nothing), (ObjectKey("v1", "Node", "a"), {"update"})):
        found = policy_rules([], owner=key)
        assert {one.verb for one in found if one.resource.endswith("/status")} == of_status
        assert {one.verb for one in found} == {"get", "list", "watch", *of_status}


def test_a_kind_without_a_definition_is_refused() -> None:
    with pytest.raises(ConfigError, match="give its CustomResourceDefinition"):
        policy_rules([], owner=OWNER)


async def test_definitions_are_read_from_a_cluster() -> None:
    cluster = EmbeddedCluster()
    await cluster.create(SHOPS, field_manager="admin")

    found = policy_rules([], owner=OWNER, definitions=await custom_definitions(cluster))

    assert verbs(found, "shops") == {"get", "list", "watch"}


class TestRoles:
    def test_rules_are_few_and_without_wildcards(self) -> None:
        resource = secret.Builder(SECRET).build()
        built = of_settings().with_resource(resource).build()

        role, _ = roles(of(built), name="op", account=ServiceAccount("op", "ops"), namespaces=["town"])

        assert role["rules"] == [
            {"apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": ["get", "create", "patch"]},
            {"apiGroups": ["example.com"], "resources": ["shops"], "verbs": ["get", "list", "watch"]},
            {"apiGroups": ["example.com"], "resources": ["shops/status"], "verbs": ["update"]},
        ]

    def test_an_operator_of_everything_gets_a_cluster_role(self) -> None:
        role, binding = roles(of(of_settings().build()), name="op", account=ServiceAccount("op", "ops"))

        assert (role["kind"], binding["kind"]) == ("ClusterRole", "ClusterRoleBinding")
        assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "op", "namespace": "ops"}]
        assert binding["roleRef"] == {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "op"}

    def test_what_is_granted_everywhere_is_not_granted_again(self) -> None:
        everywhere, here = PolicyRule("", "secrets", "get"), PolicyRule("", "secrets", "get", "ca", namespace="ops")

        assert len(roles({everywhere, here}, name="op", account=ServiceAccount("op", "ops"))) == 2
        assert len(roles({everywhere, here}, name="op", account=ServiceAccount("op", "ops"), namespaces=["town"])) == 4

    def test_each_namespace_has_a_role_of_its_own(self) -> None:
        found = roles(
            of(of_settings().build()), name="op", account=ServiceAccount("op", "ops"), namespaces=["one", "two"]
        )

        assert [(one["kind"], one["metadata"]["namespace"]) for one in found] == [
            ("Role", "one"),
            ("RoleBinding", "one"),
            ("Role", "two"),
            ("RoleBinding", "two"),
        ]

    def test_a_lease_is_where_it_is(self) -> None:
        (role, _) = roles(
            lease_rules("lead", "ops"), name="op", account=ServiceAccount("op", "ops"), namespaces=["one"]
        )

        assert role["metadata"]["namespace"] == "ops"
        assert role["rules"] == [
            {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
            {
                "apiGroups": ["coordination.k8s.io"],
                "resources": ["leases"],
                "resourceNames": ["lead"],
                "verbs": ["get", "update"],
            },
        ]


def impersonations(found: frozenset[PolicyRule]) -> set[PolicyRule]:
    return {one for one in found if one.verb == "impersonate"}


def on_account(name: str = "", namespace: str = "") -> PolicyRule:
    return PolicyRule("", "serviceaccounts", "impersonate", name, namespace=namespace)


def anywhere(group: str, resource: str, name: str) -> PolicyRule:
    return PolicyRule(group, resource, "impersonate", name, namespaced=False)


class TestActingAsAnotherUser:
    """The operator needs the right to act as the user, and what the user does is for the user's own roles."""

    @pytest.mark.parametrize(
        ("user", "more", "fixed", "wanted"),
        [
            pytest.param(
                ServiceAccount("deployer", "town"), {}, False, {on_account()}, id="an account beside the objects"
            ),
            pytest.param(
                ServiceAccount("deployer", "town"), {}, True, {on_account("deployer")}, id="the same with fixed names"
            ),
            pytest.param(
                ServiceAccount("deployer", "ops"), {}, False, {on_account("deployer", "ops")}, id="one elsewhere"
            ),
            pytest.param(
                "system:serviceaccount:ops:deployer", {}, False, {on_account("deployer", "ops")}, id="by its user name"
            ),
            pytest.param("jane", {}, False, {anywhere("", "users", "jane")}, id="a user"),
            pytest.param(
                "jane",
                {"groups": ["dev", "ops"], "uid": "7", "extra": {"Scopes": ["view", "edit"]}},
                False,
                {
                    anywhere("", "users", "jane"),
                    anywhere("", "groups", "dev"),
                    anywhere("", "groups", "ops"),
                    anywhere("authentication.k8s.io", "uids", "7"),
                    anywhere("authentication.k8s.io", "userextras/scopes", "view"),
                    anywhere("authentication.k8s.io", "userextras/scopes", "edit"),
                },
                id="with all attributes",
            ),
        ],
    )
    def test_only_what_is_named_may_be_impersonated(
        self, user: str | ServiceAccount, more: dict[str, Any], fixed: bool, wanted: set[PolicyRule]
    ) -> None:
        """Which account an owner names is not known before, as its namespace may be that of any owner."""
        found = of(of_settings().acting_as(user, **more).build(), fixed=fixed)
        assert impersonations(found) == wanted

    @pytest.mark.parametrize(
        ("cached", "wanted"),
        [
            pytest.param(True, {"get", "list", "watch"}, id="read from a cache"),
            pytest.param(False, set(), id="read as the user"),
        ],
    )
    @pytest.mark.parametrize(
        "built",
        [
            pytest.param(of_settings(), id="managed"),
            pytest.param(of_settings(gated_by=BooleanGate(True)), id="gated"),
            pytest.param(of_settings(orphan_when=True), id="orphaned"),
            pytest.param(of_settings(unowned=True, delete_with_owner=True), id="a copy"),
            pytest.param(of_settings(writes="update-only"), id="only updated"),
            pytest.param(of_settings().with_prune(kinds=[("v1", "ConfigMap")]), id="pruned"),
        ],
    )
    def test_nothing_else_is_granted(self, built: component.Builder, cached: bool, wanted: set[str]) -> None:
        found = of(built.acting_as(ServiceAccount("deployer", "town")).build(), cached=cached, enforced=True)
        assert verbs(found, "configmaps") == wanted
        assert {"get", "list", "watch"} <= verbs(found, "shops")

    def test_other_components_keep_their_privileges(self) -> None:
        acting = of_settings().acting_as(ServiceAccount("deployer", "town")).build()
        other = component.Builder("own", condition_type="OwnReady").with_resource(configmap.Builder(SETTINGS).build())
        assert verbs(of(acting, other.build()), "configmaps") == {"get", "create", "patch"}

    def test_a_role_that_the_user_writes_gives_nothing_to_the_operator(self) -> None:
        """The API server compares it with the privileges of the user."""
        rules = [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]
        reader = role.Builder({"metadata": {"name": "reader", "namespace": "town"}, "rules": rules}).build()
        acting = component.Builder("web").acting_as(ServiceAccount("deployer", "town")).with_resource(reader).build()
        assert verbs(of(acting), "secrets") == set()

    def test_a_role_restricts_the_right_to_the_accounts_of_its_namespaces(self) -> None:
        acting = of_settings().acting_as(ServiceAccount("deployer", "town")).build()
        rule = {"apiGroups": [""], "resources": ["serviceaccounts"], "verbs": ["impersonate"]}
        written = roles(of(acting), name="op", account=ServiceAccount("op", "ops"), namespaces=["town", "city"])
        with_right = [one["metadata"].get("namespace") for one in written if rule in one.get("rules", [])]
        assert with_right == ["city", "town"]


@pytest.mark.parametrize(
    ("acting", "wanted"),
    [
        pytest.param(True, set(), id="as another user, also to read"),
        pytest.param(False, {"get", "create", "patch"}, id="as the operator"),
    ],
)
def test_an_operator_needs_no_right_to_kinds_that_only_another_user_requests(acting: bool, wanted: set[str]) -> None:
    """Secrets are not cached, so they are read as the user, too."""
    made = component.Builder("web").with_resource(secret.Builder(SECRET))
    if acting:
        made.acting_as(ServiceAccount("deployer", "town"))
    shops: OwnerType[Manifest] = OwnerType("example.com/v1", "Shop", definition=lambda: SHOPS)
    declared = Operator(name="shops", owner=shops, components=lambda _: [], uncached=[("v1", "Secret")])
    assert verbs(declared.policy_rules([made.build()]), "secrets") == wanted
