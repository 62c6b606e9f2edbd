"""Managed fields: order, times, conflicts, malformed entries, and properties of server-side apply."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocf.cluster import PatchOptions, PatchType
from ocf.errors import ConflictError
from ocf.objects import Manifest, ObjectKey
from ocf_server import CustomKind, EmbeddedCluster
from ocf_server.managedfields.field_manager import ManagerEntry, ManagerIdentifier, read_entries, write_entries

Build = Callable[..., Manifest]
SETTINGS = ObjectKey("v1", "ConfigMap", "settings", "shop")


def owners(manifest: Manifest) -> list[tuple[str, str, str]]:
    entries = manifest["metadata"].get("managedFields", [])
    return [(entry["operation"], entry["manager"], entry.get("time", "")[11:19]) for entry in entries]


async def test_entries_of_applies_precede_updates_and_both_are_sorted_by_time(
    cluster: EmbeddedCluster, config_map: Build, clock: Any
) -> None:
    await cluster.create(config_map(data={"a": "1"}), field_manager="z-creator")
    for name in ("y", "x"):
        clock.advance(60)
        await cluster.apply(config_map(labels={name: name}), field_manager=name)
        patch = {"data": {name: name}}
        await cluster.patch(SETTINGS, patch, PatchOptions(patch_type=PatchType.MERGE, field_manager=f"patch-{name}"))

    assert owners(await cluster.get(SETTINGS)) == [
        ("Apply", "y", "00:01:00"),
        ("Apply", "x", "00:02:00"),
        ("Update", "z-creator", "00:00:00"),
        ("Update", "patch-y", "00:01:00"),
        ("Update", "patch-x", "00:02:00"),
    ]


async def test_an_apply_without_changes_keeps_the_times(
    cluster: EmbeddedCluster, deployment: Build, clock: Any
) -> None:
    first = await cluster.apply(deployment(), field_manager="ours")
    clock.advance(60)

    assert await cluster.apply(deployment(), field_manager="ours") == first


async def test_a_changed_value_updates_only_the_time_of_its_manager(
    cluster: EmbeddedCluster, deployment: Build, clock: Any
) -> None:
    await cluster.apply(deployment(labels={"a": "1"}), field_manager="ours")
    labels = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": deployment()["metadata"] | {"labels": {"b": "1"}},
    }
    await cluster.apply(labels, field_manager="theirs")
    clock.advance(60)
    stored = await cluster.apply(deployment(4, labels={"a": "1"}), field_manager="ours")

    assert owners(stored) == [("Apply", "theirs", "00:00:00"), ("Apply", "ours", "00:01:00")]


async def test_the_oldest_updaters_are_merged(cluster: EmbeddedCluster, config_map: Build, clock: Any) -> None:
    """At most ten entries of updates remain; the oldest are merged into one entry with all their fields."""
    await cluster.create(config_map(data={"a": "b"}), field_manager="creator")
    for number in range(12):
        clock.advance(1)
        patch = {"data": {f"k{number}": "x"}}
        await cluster.patch(SETTINGS, patch, PatchOptions(patch_type=PatchType.MERGE, field_manager=f"m{number}"))

    entries = (await cluster.get(SETTINGS))["metadata"]["managedFields"]

    names = [entry["manager"] for entry in entries]
    assert names == ["ancient-changes", *(f"m{number}" for number in range(3, 12))]
    assert set(entries[0]["fieldsV1"]["f:data"]) - {"."} == {"f:a", "f:k0", "f:k1", "f:k2"}
    assert entries[0]["time"] == "2026-01-01T00:00:03Z"


async def test_a_conflict_contains_managers_fields_and_causes(cluster: EmbeddedCluster, deployment: Build) -> None:
    await cluster.apply(deployment(), field_manager="ours")

    with pytest.raises(ConflictError) as caught:
        await cluster.apply(deployment(4), field_manager="theirs")

    cause = caught.value.causes[0]
    assert (caught.value.code, caught.value.reason) == (409, "Conflict")
    assert (cause.reason, cause.message, cause.field) == (
        "FieldManagerConflict",
        'conflict with "ours"',
        ".spec.replicas",
    )


async def test_a_rejected_apply_changes_nothing(cluster: EmbeddedCluster, deployment: Build) -> None:
    before = await cluster.apply(deployment(), field_manager="ours")
    with pytest.raises(ConflictError):
        await cluster.apply(deployment(4, labels={"a": "b"}), field_manager="theirs")

    assert await cluster.get(ObjectKey.of(before)) == before


@given(st.permutations(["Apply", "Update"]), st.lists(st.sampled_from("abc"), min_size=1, unique=True))
def test_written_entries_are_read_as_the_same_managers(operations: list[str], names: list[str]) -> None:
    managed = {
        ManagerIdentifier.of(name, operation, "v1", ""): ManagerEntry(
            {"f:data": {f"f:{name}": {}}}, "v1", "2026-01-01T00:00:00Z"
        )
        for name in names
        for operation in operations
    }

    assert read_entries(write_entries(managed.items())) == managed


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param({"operation": "Sing", "apiVersion": "v1", "fieldsType": "FieldsV1"}, id="operation"),
        pytest.param({"operation": "Apply", "fieldsType": "FieldsV1"}, id="version"),
        pytest.param(None, id="null"),
        pytest.param({"operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV9"}, id="format"),
    ],
)
def test_malformed_entries_are_rejected(entry: dict[str, Any] | None) -> None:
    with pytest.raises(ValueError, match="not well formed"):
        read_entries([entry])


NAMES = st.sampled_from("abcd")
SPECS = st.dictionaries(
    NAMES, st.integers(0, 2) | st.dictionaries(NAMES, st.integers(0, 2), min_size=1, max_size=3), max_size=4
)
FEW = settings(max_examples=40)
APPLIES = st.lists(st.tuples(st.sampled_from(["m1", "m2", "m3"]), SPECS, st.booleans()), min_size=1, max_size=8)


def widget(spec: dict[str, Any]) -> Manifest:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w", "namespace": "shop", "labels": {"keep": "it"}},
        # A field of all managers: a spec without fields becomes null, which the schema of the kind rejects.
        "spec": {"always": 1, **spec},
    }


def widgets() -> EmbeddedCluster:
    return EmbeddedCluster(kinds=[CustomKind("example.com", "v1", "Widget")], namespaces=("shop",))


async def applied(cluster: EmbeddedCluster, who: str, spec: dict[str, Any], *, force: bool) -> Manifest | None:
    try:
        return await cluster.apply(widget(spec), field_manager=who, force=force)
    except ConflictError:
        return None


@FEW
@given(APPLIES)
async def test_a_repeated_apply_changes_nothing(applies: list[tuple[str, dict[str, Any], bool]]) -> None:
    cluster = widgets()
    for who, spec, force in applies:
        first = await applied(cluster, who, spec, force=force)
        if first is not None:
            assert await cluster.apply(widget(spec), field_manager=who) == first


@FEW
@given(APPLIES)
async def test_the_values_of_the_last_apply_are_in_the_object(applies: list[tuple[str, dict[str, Any], bool]]) -> None:
    """After a successful apply, the object contains all applied values."""
    cluster = widgets()
    for who, spec, force in applies:
        stored = await applied(cluster, who, spec, force=force)
        if stored is not None:
            for name, value in spec.items():
                held = stored["spec"][name]
                assert held == value if not isinstance(value, dict) else value.items() <= held.items()


def entry_of(manifest: Manifest, who: str) -> dict[str, Any] | None:
    entries = manifest["metadata"].get("managedFields", [])
    return next((entry["fieldsV1"] for entry in entries if entry["manager"] == who), None)


@FEW
@given(APPLIES, SPECS)
async def test_an_apply_without_force_does_not_change_other_owners(
    applies: list[tuple[str, dict[str, Any], bool]], spec: dict[str, Any]
) -> None:
    """The other managers own the same fields as before."""
    cluster = widgets()
    for who, earlier, force in applies:
        await applied(cluster, who, earlier, force=force)
    before = await cluster.get(ObjectKey.of(widget({})))
    after = await applied(cluster, "newcomer", spec, force=False)

    if after is not None:
        for who in ("m1", "m2", "m3"):
            assert entry_of(after, who) == entry_of(before, who)


@FEW
@given(APPLIES)
async def test_every_owned_field_exists(applies: list[tuple[str, dict[str, Any], bool]]) -> None:
    """Owned fields are always fields of the object."""
    cluster = widgets()
    for who, spec, force in applies:
        stored = await applied(cluster, who, spec, force=force)
        if stored is not None:
            for entry in stored["metadata"]["managedFields"]:
                owned = entry["fieldsV1"].get("f:spec", {})
                assert {name[2:] for name in owned if name != "."} <= set(stored.get("spec") or {})
