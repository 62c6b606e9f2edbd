"""The ConfigMap primitive: order of the categories, its hash, and pods that are replaced when it changes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.client import V1ConfigMap

from ocf.concepts import Data, Graceful, Operational, Suspendable
from ocf.errors import BuildError, DataNotExtractedError, MutationError
from ocf.feature import BooleanGate
from ocf.objects import Manifest
from ocf.primitives import DATA_HASH, configmap, data_hash, deployment

BASE: Manifest = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "settings", "namespace": "shop"},
    "data": {"app.yaml": "log: {level: info}"},
}


def mutation(mutate: Any, name: str = "m", **gate: Any) -> configmap.Mutation:
    return configmap.Mutation(name, mutate, **gate)


def built(*mutations: configmap.Mutation, **changes: Any) -> configmap.Resource:
    return configmap.Builder({**BASE, **changes}).with_mutation(*mutations).build()


def test_it_is_static() -> None:
    for concept in (Graceful, Operational, Suspendable):
        assert not isinstance(built(), concept)
    assert built().identity == "v1/ConfigMap/shop/settings"


def test_metadata_is_edited_before_the_entries() -> None:
    ran: list[str] = []

    def mutate(m: configmap.Mutator) -> None:
        m.edit_data(lambda _: ran.append("data"))
        m.edit_object_metadata(lambda _: ran.append("metadata"))

    built(mutation(mutate)).render()
    assert ran == ["metadata", "data"]


def test_features_merge_into_one_entry_independently() -> None:
    json = mutation(lambda m: m.merge_yaml("app.yaml", "log: {format: json}"), "json")
    off = mutation(lambda m: m.merge_yaml("app.yaml", "log: {level: debug}"), "debug", feature=BooleanGate(False))
    port = mutation(lambda m: m.merge_yaml("app.yaml", "port: 80"), "port")
    rendered = built(json, off, port).render()
    assert rendered["data"]["app.yaml"] == "log:\n  level: info\n  format: json\nport: 80\n"


def test_the_short_forms_are_edits_of_the_entries_in_the_order_recorded() -> None:
    def mutate(m: configmap.Mutator) -> None:
        m.ensure_entry("a", "1")
        m.remove_entry("app.yaml")
        m.edit_data(lambda data: data.ensure_entry("b", (data.raw.data or {})["a"]))

    assert built(mutation(mutate)).render()["data"] == {"a": "1", "b": "1"}


def test_what_cannot_be_merged_names_mutation_and_category() -> None:
    broken = mutation(lambda m: m.merge_yaml("app.yaml", "log: ["), "broken")
    with pytest.raises(MutationError, match=r'mutation "broken", edit_data: configmap entry "app.yaml": failed'):
        built(broken).render()


class TestHash:
    @given(data=st.dictionaries(st.text(), st.text()))
    def test_it_knows_no_order(self, data: dict[str, str]) -> None:
        assert data_hash({"data": data}) == data_hash({"data": dict(reversed(data.items()))})

    @pytest.mark.parametrize(
        "other",
        [
            pytest.param({"data": {"a": "2"}}, id="another value"),
            pytest.param({"data": {"b": "1"}}, id="another key"),
            pytest.param({"data": {"a": "1", "b": ""}}, id="one more entry, an empty one"),
            pytest.param({"binaryData": {"a": "1"}}, id="binary"),
            pytest.param({}, id="nothing"),
        ],
    )
    def test_it_distinguishes_contents(self, other: Manifest) -> None:
        assert data_hash(other) != data_hash({"data": {"a": "1"}})

    def test_it_is_of_the_content_alone(self) -> None:
        live = {**BASE, "metadata": {**BASE["metadata"], "resourceVersion": "7", "labels": {"a": "b"}}, "data": {}}
        assert data_hash(live) == data_hash({}) == data_hash(V1ConfigMap())
        assert len(data_hash(live)) == 64

    def test_the_desired_one_is_that_of_the_rendered_object(self) -> None:
        changed = built(mutation(lambda m: m.ensure_entry("a", "1")))
        assert changed.desired_hash() == data_hash(changed.render()) == data_hash(changed.preview())
        assert changed.desired_hash() != built().desired_hash()


class TestRollOnChange:
    @pytest.fixture
    def rolled(self, deployment_base: Manifest) -> Any:
        def render(*hashes: Any, **settings: str) -> dict[str, str]:
            rolling = deployment.Mutation("rolling", lambda m: m.roll_on_change(*hashes, **settings))
            rendered = deployment.Builder(deployment_base).with_mutation(rolling).build().render()
            found: dict[str, str] = rendered["spec"]["template"]["metadata"]["annotations"]
            return found

        return render

    def test_one_hash_stands_for_itself(self, rolled: Any) -> None:
        settings = built()
        assert rolled(settings.desired_hash) == {DATA_HASH: settings.desired_hash()}
        assert rolled(settings.desired_hash, annotation="example.com/settings") == {
            "example.com/settings": settings.desired_hash()
        }

    def test_several_change_when_any_of_them_does(self, rolled: Any) -> None:
        one, other = built(), built(data={"a": "1"})
        found = {rolled(*(each.desired_hash for each in pair))[DATA_HASH] for pair in ((one, other), (one, one))}
        assert len(found | {one.desired_hash(), other.desired_hash()}) == 4

    def test_the_hash_of_an_object_that_is_only_read_comes_from_a_cell(self, rolled: Any) -> None:
        cell = Data[str]("settings-hash")
        reader = configmap.Builder(BASE).extract_into(cell, data_hash).build()
        with pytest.raises(MutationError, match="settings-hash") as unready:
            rolled(cell.require)
        assert isinstance(unready.value.__cause__, DataNotExtractedError)
        with cell.seeded(data_hash(BASE)):
            assert rolled(cell.require) == {DATA_HASH: reader.desired_hash()}


class TestWhatTheServerWouldReject:
    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            pytest.param(
                {"binaryData": {"key": "no!"}}, "must be base64: illegal base64 data at input byte 2", id="base64"
            ),
            pytest.param(
                {"data": {"a": "x" * (1024 * 1024 + 1)}}, "[]: Too long: may not be more than", id="above 1 MiB"
            ),
            pytest.param(
                {"binaryData": {"app.yaml": ""}}, "duplicate of key present in binaryData", id="duplicate key"
            ),
            pytest.param({"data": {"a b": ""}}, "a valid config key must consist", id="key"),
        ],
    )
    def test_a_base_is_rejected(self, content: Any, problem: str) -> None:
        with pytest.raises(BuildError) as caught:
            built(**content)
        (found,) = caught.value.problems
        assert found.startswith("ConfigMap shop/settings: ")
        assert problem in found

    def test_the_edit_that_exceeds_the_limit_is_named(self) -> None:
        half = "x" * (1024 * 1024 // 2)
        first = mutation(lambda m: m.ensure_entry("a", half), "first")
        second = mutation(lambda m: m.ensure_entry("b", half), "second")
        with pytest.raises(MutationError, match="Too long: may not be more than 1048576 bytes") as caught:
            built(first, second).render()
        assert caught.value.mutation == "second"

    def test_a_later_mutation_may_remove_what_an_earlier_one_added_too_much(self) -> None:
        large = mutation(lambda m: m.ensure_entry("a", "x" * (1024 * 1024 + 1)), "large")
        removed = mutation(lambda m: m.remove_entry("a"), "removed")
        assert built(large, removed).render()["data"] == BASE["data"]
