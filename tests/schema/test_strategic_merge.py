"""Properties of strategic merge patches; the results of single patches are tested with recorded responses."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.objects import copy_json
from ocf.schema.builtin import struct
from ocf.schema.strategic_merge import MalformedPatchError, PatchError, strategic_patch
from ocf_server.patch.json_patch import merge_patch

POD = struct("core.v1.PodSpec")
names = st.sampled_from("abcd")


@st.composite
def containers(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Return containers with unique names."""
    chosen = draw(st.lists(names, unique=True, max_size=4))
    ports = st.lists(st.integers(1, 5), unique=True, max_size=3)
    return [
        {
            "name": name,
            "image": draw(st.sampled_from(["x:1", "x:2"])),
            "ports": [{"containerPort": port} for port in draw(ports)],
        }
        for name in chosen
    ]


@given(containers())
def test_an_empty_patch_changes_nothing(live: list[dict[str, Any]]) -> None:
    pod = {"containers": live, "nodeSelector": {"a": "b"}}

    assert strategic_patch(pod, {}, POD) == pod


@given(containers(), containers())
def test_a_repeated_patch_changes_nothing(live: list[dict[str, Any]], patch: list[dict[str, Any]]) -> None:
    once = strategic_patch({"containers": live}, {"containers": patch}, POD)

    assert strategic_patch(once, {"containers": patch}, POD) == once


@given(containers(), containers())
def test_a_patch_keeps_other_items_and_replaces_values(live: list[dict[str, Any]], patch: list[dict[str, Any]]) -> None:
    out = strategic_patch({"containers": live}, {"containers": patch}, POD)["containers"]

    images = {item["name"]: item["image"] for item in [*live, *patch]}
    assert {item["name"]: item["image"] for item in out} == images
    assert len(out) == len(images)


@given(containers(), st.permutations("abcd"))
def test_the_items_have_the_order_of_the_directive(live: list[dict[str, Any]], order: list[str]) -> None:
    patch = {"$setElementOrder/containers": [{"name": name} for name in order]}
    out = strategic_patch({"containers": live}, patch, POD).get("containers", [])

    assert [item["name"] for item in out] == [name for name in order if name in {item["name"] for item in live}]


@given(containers(), containers())
def test_a_patch_does_not_change_its_arguments(live: list[dict[str, Any]], patch: list[dict[str, Any]]) -> None:
    document, change = {"containers": live}, {"containers": patch}
    before = copy_json([document, change])
    strategic_patch(document, change, POD)["containers"].clear()

    assert [document, change] == before


@given(st.dictionaries(names, names), st.dictionaries(names, st.none() | names))
def test_maps_are_merged_as_in_a_merge_patch(live: dict[str, str], patch: dict[str, str | None]) -> None:
    document, change = {"nodeSelector": live}, {"nodeSelector": patch}

    assert strategic_patch(document, change, POD) == merge_patch(document, change)


@pytest.mark.parametrize(
    ("patch", "kind"),
    [
        pytest.param({"nodeSelector": {"$patch": "smash"}}, PatchError, id="unknown directive"),
        pytest.param({"containers": [{"name": "a", "$patch": "merge"}]}, PatchError, id="merge directive in a list"),
        pytest.param({"containers": [{"$patch": "delete"}]}, PatchError, id="delete directive without a key"),
        pytest.param({"containers": [{"image": "x"}]}, PatchError, id="item without its key"),
        pytest.param({"$setElementOrder/containers": "a"}, PatchError, id="order is not a list"),
        pytest.param({"$retainKeys": "a"}, MalformedPatchError, id="keys are not a list"),
    ],
)
def test_a_malformed_directive_is_rejected(patch: dict[str, Any], kind: type[Exception]) -> None:
    document = {"containers": [{"name": "a", "image": "x:1"}], "nodeSelector": {"a": "b"}}
    with pytest.raises(kind):
        strategic_patch(document, patch, POD)
