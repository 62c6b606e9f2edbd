"""The PodDisruptionBudget primitive: static, its metadata edited before its spec."""

from ocf.concepts import Graceful, Operational, Suspendable
from ocf.objects import Manifest
from ocf.primitives import pdb

BASE: Manifest = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
}


def test_it_is_static() -> None:
    resource = pdb.Builder(BASE).build()
    assert resource.identity == "policy/v1/PodDisruptionBudget/shop/web"
    for concept in (Graceful, Operational, Suspendable):
        assert not isinstance(resource, concept)


def test_metadata_is_edited_before_the_spec() -> None:
    ran: list[str] = []

    def mutate(m: pdb.Mutator) -> None:
        m.edit_pdb_spec(lambda _: ran.append("spec"))
        m.edit_object_metadata(lambda _: ran.append("metadata"))

    pdb.Builder(BASE).with_mutation(pdb.Mutation("m", mutate)).build().render()
    assert ran == ["metadata", "spec"]


def test_the_spec_is_edited() -> None:
    edited = pdb.Mutation("m", lambda m: m.edit_pdb_spec(lambda spec: spec.set_min_available(2)))
    rendered = pdb.Builder(BASE).with_mutation(edited).build().render()
    assert rendered["spec"] == {**BASE["spec"], "minAvailable": 2}
