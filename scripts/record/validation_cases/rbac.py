"""Mistakes in Roles, ClusterRoles and their bindings, and in ServiceAccounts."""

from typing import Any, Final

from scripts.record.validation_cases.table import REMOVED, Mistake, Table, at, together

__all__ = ["TABLES"]

_VERSION: Final = "rbac.authorization.k8s.io/v1"
_RULE: Final = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
_URLS: Final = {"nonResourceURLs": ["/healthz"], "verbs": ["get"]}


def _object(kind: str, name: str, *, namespaced: bool, **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": "default"} if namespaced else {})}
    return {"apiVersion": _VERSION, "kind": kind, "metadata": metadata, **fields}


_RULES: Final[tuple[Mistake, ...]] = (
    *at("rules", [], None, REMOVED, [{}], [_RULE, {}], [_URLS], [{**_RULE, **_URLS}], "x"),
    *at("rules[0].verbs", [], REMOVED, ["*"], [""], "get"),
    *at("rules[0].apiGroups", [], REMOVED, ["*"], ["apps", "batch"]),
    *at("rules[0].resources", [], REMOVED, ["*"], ["pods/log", "a b"]),
    *at("rules[0].resourceNames", ["a"], []),
    *at("rules[0].nonResourceURLs", ["/x"], [], ["*"], ["x"], ["/x/*"]),
    *at(
        "rules[+]",
        {},
        {"verbs": []},
        {"verbs": ["get"], "nonResourceURLs": ["/x"]},
        {"verbs": ["get"], "apiGroups": []},
    ),
    *at("metadata.name", "system:web", "a/b", "a%b", "UPPER", "a b", "..", "."),
)

_ROLES: Final = Table(
    kind="Role",
    bases={"plain": _object("Role", "web", namespaced=True, rules=[_RULE])},
    stored={"plain": _object("Role", "stored", namespaced=True, rules=[_RULE])},
    mistakes=_RULES,
    changes=at("rules", [], [{}]),
    pairs=15,
)
_CLUSTER_ROLES: Final = Table(
    kind="ClusterRole",
    bases={
        "plain": _object("ClusterRole", "web", namespaced=False, rules=[_RULE, _URLS]),
        "aggregated": _object(
            "ClusterRole",
            "web",
            namespaced=False,
            aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]},
            rules=[],
        ),
    },
    stored={"plain": _object("ClusterRole", "stored", namespaced=False, rules=[_RULE])},
    mistakes=(
        *_RULES,
        *at("aggregationRule", {}, {"clusterRoleSelectors": []}, None),
        *at(
            "aggregationRule.clusterRoleSelectors",
            [{}],
            [{"matchLabels": {"a b": "c"}}],
            [{"matchLabels": {"a": "b c"}}],
        ),
        *at(
            "aggregationRule.clusterRoleSelectors[0].matchExpressions",
            [{"key": "a", "operator": "In"}],
            [{"key": "a", "operator": "X"}],
        ),
    ),
    changes=at("rules", [], [{}]),
    pairs=15,
)

_REF: Final = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "web"}
_CLUSTER_REF: Final = {**_REF, "kind": "ClusterRole"}
_ACCOUNT: Final = {"kind": "ServiceAccount", "name": "web", "namespace": "default"}
_USER: Final = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "anna"}
_GROUP: Final = {**_USER, "kind": "Group", "name": "team"}
_BINDINGS: Final[tuple[Mistake, ...]] = (
    *at("roleRef", REMOVED, {}, {"kind": "Role", "name": "web"}),
    *at("roleRef.kind", "Role", "ClusterRole", "role", "", REMOVED, "Pod"),
    *at("roleRef.name", "", "a/b", REMOVED, "system:x", "a%b", "."),
    *at("roleRef.apiGroup", "", "apps", REMOVED, "rbac"),
    *at("subjects", [], REMOVED, [{}], [_USER, {}], [_USER, _USER], "x"),
    *at("subjects[0].kind", "User", "Group", "ServiceAccount", "user", "", REMOVED, "Pod"),
    *at("subjects[0].name", "", "UPPER", "a/b", REMOVED, "a b"),
    *at("subjects[0].namespace", "", "shop", REMOVED, "A_B"),
    *at("subjects[0].apiGroup", "", "apps", REMOVED, "rbac.authorization.k8s.io"),
    *at("subjects[+]", {"kind": "ServiceAccount", "name": "x"}, {"kind": "User", "name": "x", "namespace": "y"}),
    *at("metadata.name", "system:web", "a/b", "UPPER"),
)
_REF_CHANGES: Final[tuple[Mistake, ...]] = (
    *at("roleRef.name", "other", ""),
    *at("roleRef.kind", "ClusterRole", "Role", "x"),
    *at("roleRef.apiGroup", "", "apps"),
    *at("subjects", [], [_USER]),
)


def _binding_table(kind: str, *, namespaced: bool, ref: dict[str, Any]) -> Table:
    fields = {
        "account": {"roleRef": ref, "subjects": [_ACCOUNT]},
        "user": {"roleRef": ref, "subjects": [_USER, _GROUP]},
    }
    return Table(
        kind=kind,
        bases={name: _object(kind, "web", namespaced=namespaced, **each) for name, each in fields.items()},
        stored={name: _object(kind, f"stored-{name}", namespaced=namespaced, **each) for name, each in fields.items()},
        mistakes=_BINDINGS,
        changes=_REF_CHANGES,
        pairs=15,
    )


_METADATA: Final = {"name": "web", "namespace": "default"}
_ACCOUNTS: Final = Table(
    kind="ServiceAccount",
    bases={"plain": {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _METADATA}},
    stored={"plain": {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {**_METADATA, "name": "stored"}}},
    mistakes=(
        *at("metadata.name", "UPPER", "a_b", "a.b", ""),
        *at("secrets", [{"name": "a"}], [{}], "x", [{"name": ""}], [{"name": "a"}, {"name": "a"}]),
        *at("imagePullSecrets", [{"name": "a"}], [{}], [{"name": "A_B"}]),
        *at("automountServiceAccountToken", True, "x", None),
        *together(("metadata.annotations", {"kubernetes.io/enforce-mountable-secrets": "true"}), ("secrets", [])),
        *at("metadata.labels", {"a b": "c"}, {"a": "b c"}),
    ),
    pairs=8,
)

TABLES: Final = (
    _ROLES,
    _CLUSTER_ROLES,
    _binding_table("RoleBinding", namespaced=True, ref=_REF),
    _binding_table("ClusterRoleBinding", namespaced=False, ref=_CLUSTER_REF),
    _ACCOUNTS,
)
