"""Field ownership, as `managedFields` of a live object shows it."""

from typing import Any

import pytest

from ocf.objects import Manifest
from ocf.objects.managed_fields import FieldManager, ManagedFields, field_manager, fields_path, read_key, restricted

FIELDS: Manifest = {
    "f:metadata": {"f:finalizers": {".": {}, 'v:"ocf.dev/app"': {}}},
    "f:spec": {
        "f:replicas": {},
        "f:template": {"f:spec": {"f:containers": {'k:{"name":"app"}': {".": {}, "f:image": {}, "f:name": {}}}}},
    },
}
REPLICAS = ("spec", "replicas")


def entry(manager: str, operation: str = "Apply", fields: Any = FIELDS, **others: Any) -> Manifest:
    return {"manager": manager, "operation": operation, "fieldsV1": fields, **others}


def managed(*entries: Manifest) -> ManagedFields:
    return ManagedFields.of({"metadata": {"managedFields": list(entries)}})


@pytest.mark.parametrize("live", [None, {}, {"metadata": {}}, {"metadata": {"managedFields": None}}])
def test_an_object_without_entries_has_no_managers(live: Manifest | None) -> None:
    found = ManagedFields.of(live)

    assert found == ManagedFields(())
    assert (found.owned_by("us"), found.owns("us", REPLICAS), list(found.owners_of(REPLICAS))) == (None, False, [])
    assert found.paths() == {}


@pytest.mark.parametrize(
    ("found", "fields"),
    [
        pytest.param(entry("us"), FIELDS, id="an apply"),
        pytest.param(entry("us", fields=None), {}, id="an apply that owns nothing"),
        pytest.param(entry("us", subresource=""), FIELDS, id="an empty subresource is the object"),
        pytest.param(entry("us", "Update"), None, id="an update is not an apply"),
        pytest.param(entry("us", subresource="status"), None, id="an apply to the status"),
        pytest.param(entry("us/left"), None, id="another manager"),
    ],
)
def test_owned_by_reads_the_managers_apply(found: Manifest, fields: Manifest | None) -> None:
    assert managed(entry("kubectl", fields={}), found).owned_by("us") == fields


@pytest.mark.parametrize(
    ("path", "owned"),
    [
        pytest.param(REPLICAS, True, id="a leaf"),
        pytest.param(("spec", "template"), True, id="a parent"),
        pytest.param((), True, id="the object"),
        pytest.param(("spec", "paused"), False, id="an unlisted field"),
        pytest.param(("spec", "replicas", "deeper"), False, id="below a leaf"),
    ],
)
def test_a_manager_owns_what_its_apply_lists(path: tuple[str, ...], owned: bool) -> None:
    assert managed(entry("us")).owns("us", path) is owned
    assert not managed(entry("us", "Update")).owns("us", path)


def test_the_owners_of_a_field_are_those_of_every_operation() -> None:
    found = managed(
        entry("us"), entry("other", fields={"f:spec": {}}), entry("hpa", "Update", subresource="scale"), {"time": "x"}
    )

    assert list(found.owners_of(REPLICAS)) == [FieldManager("us", "Apply", ""), FieldManager("hpa", "Update", "scale")]


def test_paths_name_the_innermost_fields() -> None:
    assert managed(entry("us"), entry("empty", fields=None)).paths() == {
        FieldManager("us", "Apply", ""): {
            "metadata.finalizers[ocf.dev/app]",
            "spec.replicas",
            "spec.template.spec.containers[name=app].image",
            "spec.template.spec.containers[name=app].name",
        },
        FieldManager("empty", "Apply", ""): frozenset(),
    }


def test_a_key_may_contain_a_colon_and_several_parts() -> None:
    fields: Manifest = {
        "f:metadata": {"f:labels": {"f:a:b": {}}},
        "f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}}},
    }

    assert managed(entry("us", fields=fields)).paths() == {
        FieldManager("us", "Apply", ""): {"metadata.labels.a:b", "ports[port=80,protocol=TCP]"}
    }


def test_an_entry_shows_the_time_of_its_write() -> None:
    first, second = managed(entry("us", time="2026-01-31T12:00:00Z"), entry("us", "Update")).entries

    assert (first.time, second.time) == ("2026-01-31T12:00:00Z", "")


@pytest.mark.parametrize(
    ("paths", "kept"),
    [
        pytest.param([], {}, id="nothing"),
        pytest.param([REPLICAS], {"f:spec": {"f:replicas": {}}}, id="a leaf"),
        pytest.param([REPLICAS, ("spec", "paused")], {"f:spec": {"f:replicas": {}}}, id="an unlisted field"),
        pytest.param([("metadata",), REPLICAS], {**FIELDS, "f:spec": {"f:replicas": {}}}, id="two fields"),
    ],
)
def test_a_restricted_fieldset_lists_only_the_paths_given(paths: list[tuple[str, ...]], kept: Manifest) -> None:
    before = str(FIELDS)

    assert restricted(FIELDS, [fields_path(path) for path in paths]) == kept
    assert str(FIELDS) == before


@pytest.mark.parametrize(
    ("name", "key"),
    [('k:{"name":"app"}', {"name": "app"}), ('v:"text"', "text"), ("v:80", 80)],
)
def test_a_key_is_json(name: str, key: Any) -> None:
    assert read_key(name) == key


class TestNameOfAFieldManager:
    def test_a_name_at_the_limit_is_kept_and_one_above_is_hashed(self) -> None:
        assert field_manager("shops", "x" * 122) == "shops/" + "x" * 122
        hashed = field_manager("shops", "x" * 123)
        assert (len(hashed), hashed) == (70, field_manager("shops", "x" * 123))
        assert hashed.startswith("shops/")

    def test_the_limit_is_in_bytes(self) -> None:
        assert field_manager("shops", "ü" * 61) == "shops/" + "ü" * 61
        assert len(field_manager("shops", "ü" * 62)) == 70

    def test_a_first_part_that_leaves_no_room_for_the_hash_is_in_it(self) -> None:
        assert len(field_manager("x" * 63, "y" * 200)) == 128
        assert len(field_manager("x" * 64, "y" * 200)) == 64

    def test_two_long_names_have_different_hashes(self) -> None:
        assert field_manager("Shop", "x" * 200, "a") != field_manager("Shop", "x" * 200, "b")
