"""The NetworkPolicy primitive: static, its metadata edited before its spec."""

from ocf.concepts import Graceful, Operational, Suspendable
from ocf.objects import Manifest
from ocf.primitives import networkpolicy

BASE: Manifest = {
    "apiVersion": "networking.k8s.io/v1",
    "kind": "NetworkPolicy",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"podSelector": {"matchLabels": {"app": "web"}}},
}


def test_it_is_static() -> None:
    resource = networkpolicy.Builder(BASE).build()
    assert resource.identity == "networking.k8s.io/v1/NetworkPolicy/shop/web"
    for concept in (Graceful, Operational, Suspendable):
        assert not isinstance(resource, concept)


def test_metadata_is_edited_before_the_spec() -> None:
    ran: list[str] = []

    def mutate(m: networkpolicy.Mutator) -> None:
        m.edit_network_policy_spec(lambda _: ran.append("spec"))
        m.edit_object_metadata(lambda _: ran.append("metadata"))

    networkpolicy.Builder(BASE).with_mutation(networkpolicy.Mutation("m", mutate)).build().render()
    assert ran == ["metadata", "spec"]


def test_the_spec_is_edited() -> None:
    edited = networkpolicy.Mutation(
        "m", lambda m: m.edit_network_policy_spec(lambda spec: spec.set_policy_types(["Ingress"]))
    )
    rendered = networkpolicy.Builder(BASE).with_mutation(edited).build().render()
    assert rendered["spec"] == {**BASE["spec"], "policyTypes": ["Ingress"]}
