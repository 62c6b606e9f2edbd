"""Rules that kinds without a pod template have in common: identity, order of the edits, and suspension."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf.concepts import Graceful, Operational, Suspendable
from ocf.errors import BuildError

if TYPE_CHECKING:
    from ocf.objects import Manifest

RBAC: Final = "rbac.authorization.k8s.io/v1"
REFERENCE: Final[Manifest] = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "web"}
CERTIFICATE: Final[Manifest] = {"secretName": "tls", "issuerRef": {"name": "internal"}}
MONITOR: Final[Manifest] = {"selector": {}, "endpoints": []}

# row: package, kind, content, whether it is cluster-scoped
ROWS: Final[list[tuple[str, str, str, Manifest, bool]]] = [
    ("ingress", "networking.k8s.io/v1", "Ingress", {"spec": {}}, False),
    ("pvc", "v1", "PersistentVolumeClaim", {"spec": {}}, False),
    ("pv", "v1", "PersistentVolume", {"spec": {}}, True),
    ("role", RBAC, "Role", {}, False),
    ("clusterrole", RBAC, "ClusterRole", {}, True),
    ("rolebinding", RBAC, "RoleBinding", {"roleRef": REFERENCE}, False),
    ("clusterrolebinding", RBAC, "ClusterRoleBinding", {"roleRef": REFERENCE}, True),
    ("pdb", "policy/v1", "PodDisruptionBudget", {"spec": {}}, False),
    ("networkpolicy", "networking.k8s.io/v1", "NetworkPolicy", {"spec": {}}, False),
    ("service", "v1", "Service", {"spec": {}}, False),
    ("serviceaccount", "v1", "ServiceAccount", {}, False),
    ("httproute", "gateway.networking.k8s.io/v1", "HTTPRoute", {"spec": {}}, False),
    ("certificate", "cert-manager.io/v1", "Certificate", {"spec": CERTIFICATE}, False),
    ("servicemonitor", "monitoring.coreos.com/v1", "ServiceMonitor", {"spec": MONITOR}, False),
    ("prometheusrule", "monitoring.coreos.com/v1", "PrometheusRule", {"spec": {}}, False),
]
STATIC: Final = {
    "role",
    "clusterrole",
    "rolebinding",
    "clusterrolebinding",
    "pdb",
    "networkpolicy",
    "serviceaccount",
    "servicemonitor",
    "prometheusrule",
}
EVERY: Final = pytest.mark.parametrize(
    ("package", "base", "identity"),
    [
        pytest.param(
            package,
            {
                "apiVersion": api_version,
                "kind": kind,
                "metadata": {"name": "web"} | ({} if scoped else {"namespace": "shop"}),
                **content,
            },
            f"{api_version}/{kind}/{'' if scoped else 'shop/'}web",
            id=package,
        )
        for package, api_version, kind, content, scoped in ROWS
    ],
)


def module(package: str) -> Any:
    return importlib.import_module(f"ocf.primitives.{package}")


@EVERY
def test_identity_and_scope(package: str, base: Manifest, identity: str) -> None:
    assert module(package).Builder(base).build().identity == identity
    cluster_scoped = "namespace" not in base["metadata"]
    other = {"name": "web"} | ({"namespace": "shop"} if cluster_scoped else {})
    problem = "cluster-scoped object must not have a namespace" if cluster_scoped else "object namespace cannot be"
    with pytest.raises(BuildError, match=problem):
        module(package).Builder({**base, "metadata": other}).build()


@EVERY
def test_edits_run_in_the_order_of_the_categories_not_of_recording(package: str, base: Manifest, identity: str) -> None:
    kind = module(package)
    names = [category.name for category in kind.Mutator.categories]
    ran: list[str] = []

    def record(mutator: Any, name: str) -> None:
        getattr(mutator, name)(lambda _: ran.append(name))

    def mutate(mutator: Any) -> None:
        for name in reversed(names):
            record(mutator, name)

    rendered = kind.Builder(base).with_mutation(kind.Mutation("m", mutate)).build().render()
    assert ran == names
    assert names[0] == "edit_object_metadata"
    assert rendered == base, identity


@EVERY
def test_suspension_does_not_touch_it(package: str, base: Manifest, identity: str) -> None:
    resource = module(package).Builder(base).build()
    assert resource.render(suspended=True) == base, identity
    for concept in (Graceful, Operational, Suspendable):
        assert isinstance(resource, concept) is (package not in STATIC)
    if package not in STATIC:
        assert resource.delete_on_suspend() is False
