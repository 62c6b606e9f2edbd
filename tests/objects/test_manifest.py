"""Object keys, field paths and copies of manifests."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.errors import ConfigError, ManifestError
from ocf.objects import Manifest, ObjectKey, copy_json
from ocf.objects.paths import FieldPath, format_path, get_field, parse_path, with_field, without_field

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.sampled_from("abc"), JSON, max_size=3)
PATHS = st.lists(st.sampled_from("abcd"), min_size=1, max_size=3).map(tuple)


class TestObjectKey:
    @pytest.mark.parametrize(
        ("manifest", "text"),
        [
            pytest.param(
                {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "b", "namespace": "a"}},
                "apps/v1/Deployment/a/b",
                id="namespaced",
            ),
            pytest.param(
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b", "namespace": "a"}},
                "v1/ConfigMap/a/b",
                id="core group",
            ),
            pytest.param(
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "b"}},
                "v1/Namespace/b",
                id="cluster-scoped",
            ),
        ],
    )
    def test_is_written_as_an_identity(self, manifest: Manifest, text: str) -> None:
        assert str(ObjectKey.of(manifest)) == text

    @pytest.mark.parametrize(
        ("manifest", "problems"),
        [
            pytest.param({}, ["apiVersion", "kind", "metadata.name"], id="nothing"),
            pytest.param({"apiVersion": "v1", "kind": "X", "metadata": "y"}, ["metadata.name"], id="no metadata"),
            pytest.param({"apiVersion": "v1", "kind": "X", "metadata": {"name": 3}}, ["metadata.name"], id="a number"),
            pytest.param(
                {"apiVersion": "v1", "kind": "X", "metadata": {"name": "a", "namespace": 3}},
                ["metadata.namespace"],
                id="a number for a namespace",
            ),
        ],
    )
    def test_every_missing_part_is_named(self, manifest: Manifest, problems: list[str]) -> None:
        with pytest.raises(ManifestError) as caught:
            ObjectKey.of(manifest)
        assert [problem.path for problem in caught.value.problems] == problems


class TestPaths:
    @pytest.mark.parametrize("text", ["", ".", "spec.", ".spec", "spec..replicas", "spec.ports[0]"])
    def test_an_invalid_path_is_rejected(self, text: str) -> None:
        with pytest.raises(ConfigError, match="is not a field path"):
            parse_path(text)

    def test_reading_leads_nowhere_without_an_error(self) -> None:
        value = {"a": [{"b": 1}], "c": None}
        assert get_field(value, ("a", 0, "b")) == 1
        nowhere: list[FieldPath] = [("a", 1), ("a", "b"), ("a", 0, "b", "c"), ("c", "d"), ("x",)]
        for path in nowhere:
            assert get_field(value, path, {"default": 1}) == {"default": 1}

    @given(manifest=OBJECTS, path=PATHS, value=JSON)
    def test_what_is_set_is_read_and_nothing_else_changes(
        self, manifest: Manifest, path: tuple[str, ...], value: Any
    ) -> None:
        before = copy_json(manifest)
        changed = with_field(manifest, path, value)
        assert get_field(changed, path) == value
        assert manifest == before
        assert {key: item for key, item in changed.items() if key != path[0]} == {
            key: item for key, item in manifest.items() if key != path[0]
        }

    @given(manifest=OBJECTS, path=PATHS)
    def test_what_is_removed_is_gone_and_nothing_else_changes(self, manifest: Manifest, path: tuple[str, ...]) -> None:
        before = copy_json(manifest)
        absent = object()
        changed = without_field(manifest, path)
        assert get_field(changed, path, absent) is absent
        assert manifest == before
        if get_field(manifest, path, absent) is absent:
            assert changed is manifest

    def test_a_path_is_written_as_users_read_it(self) -> None:
        assert format_path(parse_path("spec.replicas")) == "spec.replicas"
        assert format_path(("spec", "metrics", 0, 1, "x")) == "spec.metrics[0][1].x"


class TestSameObject:
    KEY = ObjectKey("apps/v1", "Deployment", "web", "shop")

    def test_a_key_has_a_group(self) -> None:
        assert (self.KEY.group, self.KEY.group_kind) == ("apps", ("apps", "Deployment"))
        assert ObjectKey("v1", "Pod", "web").group_kind == ("", "Pod")

    @pytest.mark.parametrize(
        ("other", "same"),
        [
            pytest.param(ObjectKey("apps/v1beta1", "Deployment", "web", "shop"), True, id="another version"),
            pytest.param(ObjectKey("v1", "Deployment", "web", "shop"), False, id="another group"),
            pytest.param(ObjectKey("apps/v1", "DaemonSet", "web", "shop"), False, id="another kind"),
            pytest.param(ObjectKey("apps/v1", "Deployment", "db", "shop"), False, id="another name"),
            pytest.param(ObjectKey("apps/v1", "Deployment", "web"), False, id="another namespace"),
        ],
    )
    def test_the_version_does_not_make_another_object(self, other: ObjectKey, same: bool) -> None:
        assert self.KEY.same_object(other) is other.same_object(self.KEY) is same
        assert (self.KEY.unversioned == other.unversioned) is same


@given(value=JSON)
def test_a_copy_is_equal_and_shares_nothing(value: Any) -> None:
    copied = copy_json(value)
    assert copied == value
    assert not (_containers(copied) & _containers(value))


def _containers(value: Any) -> set[int]:
    if isinstance(value, dict):
        return {id(value)}.union(*map(_containers, value.values()))
    if isinstance(value, list):
        return {id(value)}.union(*map(_containers, value))
    return set()
