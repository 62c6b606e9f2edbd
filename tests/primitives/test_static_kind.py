"""A static kind, declared in a few lines: what a new kind costs, and that the engine gives it the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from kubernetes.client import V1ClusterRole, V1ConfigMap

from ocf import feature
from ocf.concepts import Alive, Graceful, Operational, Suspendable
from ocf.editors import Editor, ObjectMetaEditor
from ocf.errors import BuildError, ConfigError
from ocf.primitives import BaseMutator, Edits, Handlers, Kind, StaticBuilder

if TYPE_CHECKING:
    from ocf.objects import Manifest


class DataEditor(Editor[V1ConfigMap]):
    def set_entry(self, key: str, value: str) -> None:
        self.raw.data = {**(self.raw.data or {}), key: value}


class Mutator(BaseMutator):
    edit_object_metadata = Edits(ObjectMetaEditor, "metadata")
    edit_data = Edits(DataEditor, "")


CONFIG_MAP: Kind[V1ConfigMap, Mutator] = Kind("v1", "ConfigMap", "V1ConfigMap", Mutator)
CLUSTER_ROLE: Kind[V1ClusterRole, Mutator] = Kind(
    "rbac.authorization.k8s.io/v1", "ClusterRole", "V1ClusterRole", Mutator, cluster_scoped=True
)


def config_map(**metadata: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "1"}}


def cluster_role(**metadata: str) -> Manifest:
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": metadata}


def test_content_at_the_top_of_the_object_is_edited_after_the_metadata() -> None:
    def mutate(m: Mutator) -> None:
        m.edit_data(lambda data: data.set_entry("b", (data.raw.metadata.labels or {})["tier"]))  # type: ignore[union-attr]  # set by the edit before
        m.edit_object_metadata(lambda meta: meta.ensure_label("tier", "web"))

    builder = StaticBuilder(config_map(name="settings", namespace="shop"), CONFIG_MAP, Handlers())
    rendered = builder.with_mutation(feature.Mutation("m", mutate)).build().render()
    assert rendered["data"] == {"a": "1", "b": "web"}


def test_a_static_resource_has_no_status_and_cannot_be_suspended() -> None:
    resource = StaticBuilder(config_map(name="settings", namespace="shop"), CONFIG_MAP, Handlers()).build()
    for concept in (Alive, Operational, Graceful, Suspendable):
        assert not isinstance(resource, concept)
    assert resource.render(suspended=True) == resource.render()


def test_a_cluster_scoped_object_has_no_namespace() -> None:
    with pytest.raises(BuildError, match="cluster-scoped object must not have a namespace"):
        StaticBuilder(cluster_role(name="viewer", namespace="shop"), CLUSTER_ROLE, Handlers()).build()
    resource = StaticBuilder(cluster_role(name="viewer"), CLUSTER_ROLE, Handlers()).build()
    assert resource.identity == "rbac.authorization.k8s.io/v1/ClusterRole/viewer"


class Builder(StaticBuilder[V1ConfigMap, Mutator]):
    kind = CONFIG_MAP


def test_the_builder_of_one_kind_declares_it() -> None:
    resource = Builder(config_map(name="settings", namespace="shop")).build()
    assert (resource.identity, resource.render()["data"]) == ("v1/ConfigMap/shop/settings", {"a": "1"})


def test_a_declaration_that_is_passed_comes_before_that_of_the_class() -> None:
    other: Kind[V1ConfigMap, Mutator] = Kind("v1", "ConfigMap", "V1ConfigMap", Mutator, cluster_scoped=True)
    with pytest.raises(BuildError, match="cluster-scoped object must not have a namespace"):
        Builder(config_map(name="settings", namespace="shop"), other).build()


def test_a_builder_without_a_declaration_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"^StaticBuilder: kind: required value; set the class attribute, or pass"):
        StaticBuilder(config_map(name="settings", namespace="shop"))
