"""JSON patches, merge patches and strategic merge patches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf.cluster import PatchType
from ocf.errors import ApiError, BadRequestError, InvalidError

if TYPE_CHECKING:
    from tests.cluster.conformance.conftest import Env

DATA: Final = "data: {a: '1', b: '2'}"


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        pytest.param([{"op": "add", "path": "/data/c", "value": "3"}], {"a": "1", "b": "2", "c": "3"}, id="add"),
        pytest.param([{"op": "add", "path": "/data/a", "value": "3"}], {"a": "3", "b": "2"}, id="add over"),
        pytest.param([{"op": "replace", "path": "/data/a", "value": "3"}], {"a": "3", "b": "2"}, id="replace"),
        pytest.param([{"op": "remove", "path": "/data/a"}], {"b": "2"}, id="remove"),
        pytest.param([{"op": "move", "from": "/data/a", "path": "/data/c"}], {"b": "2", "c": "1"}, id="move"),
        pytest.param([{"op": "copy", "from": "/data/a", "path": "/data/c"}], {"a": "1", "b": "2", "c": "1"}, id="copy"),
        pytest.param(
            [{"op": "test", "path": "/data/a", "value": "1"}, {"op": "remove", "path": "/data/a"}],
            {"b": "2"},
            id="test that holds",
        ),
        pytest.param(
            [{"op": "add", "path": "/data/x~1y", "value": "3"}], {"a": "1", "b": "2", "x/y": "3"}, id="escaped slash"
        ),
        pytest.param([], {"a": "1", "b": "2"}, id="nothing"),
    ],
)
async def test_a_json_patch_is_a_list_of_operations(
    env: Env, operations: list[dict[str, str]], expected: dict[str, str]
) -> None:
    await env.create("Gadget", DATA)
    live = await env.patch("Gadget", operations, patch_type=PatchType.JSON)

    assert live["data"] == expected


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        pytest.param({"op": "test", "path": "/data/a", "value": "2"}, 422, id="a test that does not hold"),
        pytest.param({"op": "remove", "path": "/data/c"}, 422, id="removing a missing value"),
        pytest.param({"op": "add", "path": "/c/d", "value": "3"}, 422, id="adding to a missing parent"),
        pytest.param({"op": "jump", "path": "/data/a"}, 422, id="an unknown operation"),
    ],
)
async def test_a_failing_operation_changes_nothing(env: Env, operation: dict[str, str], code: int) -> None:
    made = await env.create("ConfigMap", DATA)
    first = {"op": "add", "path": "/data/z", "value": "26"}

    with pytest.raises(ApiError) as caught:
        await env.patch("ConfigMap", [first, operation], patch_type=PatchType.JSON)
    assert caught.value.code == code
    assert await env.get("ConfigMap") == made


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        pytest.param({"c": "3"}, {"a": "1", "b": "2", "c": "3"}, id="a value is added"),
        pytest.param({"a": "3"}, {"a": "3", "b": "2"}, id="a value is replaced"),
        pytest.param({"a": None}, {"b": "2"}, id="null removes"),
        pytest.param({"c": None}, {"a": "1", "b": "2"}, id="null for a missing value"),
        pytest.param({}, {"a": "1", "b": "2"}, id="nothing"),
    ],
)
@pytest.mark.parametrize("patch_type", [PatchType.MERGE, PatchType.STRATEGIC_MERGE])
async def test_a_merge_patch_states_the_desired_values(
    env: Env, patch_type: PatchType, patch: dict[str, str | None], expected: dict[str, str]
) -> None:
    await env.create("ConfigMap", DATA)
    live = await env.patch("ConfigMap", {"data": patch}, patch_type=patch_type)

    assert live["data"] == expected


async def test_a_merge_patch_replaces_lists(env: Env) -> None:
    await env.create("Widget", "spec: {parts: [{name: a}, {name: b}], tags: [a, b]}")
    live = await env.merge("Widget", "spec: {parts: [{name: c}], tags: [c]}")

    assert live["spec"]["parts"] == [{"name": "c", "count": 1}]
    assert live["spec"]["tags"] == ["c"]


def containers(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": list(entries)}}}}


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        pytest.param(
            containers({"name": "side", "image": "side:1"}), {"side": "side:1", "web": "web:1"}, id="an item is added"
        ),
        pytest.param(
            containers({"name": "web", "image": "web:2"}), {"web": "web:2"}, id="an item is merged by its key"
        ),
        pytest.param(
            containers({"name": "side", "image": "side:1"}, {"name": "web", "$patch": "delete"}),
            {"side": "side:1"},
            id="an item is deleted",
        ),
        pytest.param(
            containers({"name": "side", "image": "side:1"}, {"$patch": "replace"}),
            {"side": "side:1"},
            id="the list is replaced",
        ),
        pytest.param(
            {
                "spec": {
                    "template": {
                        "spec": {
                            "$setElementOrder/containers": [{"name": "web"}, {"name": "side"}],
                            "containers": [{"name": "side", "image": "side:1"}],
                        }
                    }
                }
            },
            {"web": "web:1", "side": "side:1"},
            id="an order is set",
        ),
    ],
)
@pytest.mark.promise("conformance")
async def test_a_strategic_patch_merges_lists_by_key(env: Env, patch: dict[str, Any], expected: dict[str, str]) -> None:
    await env.create("Deployment")
    live = await env.patch("Deployment", patch, patch_type=PatchType.STRATEGIC_MERGE)
    found = {each["name"]: each["image"] for each in live["spec"]["template"]["spec"]["containers"]}

    assert list(found.items()) == list(expected.items())


async def test_a_strategic_patch_merges_sets(env: Env) -> None:
    await env.create("ConfigMap", "metadata: {finalizers: [a.io/x]}")
    patch = {"metadata": {"finalizers": ["b.io/z"], "$deleteFromPrimitiveList/finalizers": ["a.io/x"]}}
    live = await env.patch("ConfigMap", patch, patch_type=PatchType.STRATEGIC_MERGE)

    assert live["metadata"]["finalizers"] == ["b.io/z"]


async def test_a_strategic_patch_keeps_the_keys_it_names(env: Env) -> None:
    await env.create("Deployment", f"spec: {{strategy: {{type: RollingUpdate}}, {_SPEC}}}")
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    live = await env.patch("Deployment", patch, patch_type=PatchType.STRATEGIC_MERGE)

    assert live["spec"]["strategy"] == {"type": "Recreate"}


async def test_an_unknown_directive_is_rejected(env: Env) -> None:
    await env.create("Deployment")

    with pytest.raises(InvalidError) as caught:
        await env.patch(
            "Deployment",
            containers({"name": "web", "$patch": "smash"}),
            patch_type=PatchType.STRATEGIC_MERGE,
        )
    assert (caught.value.code, caught.value.reason) == (500, "")


@pytest.mark.parametrize(
    ("patch_type", "patch"),
    [
        pytest.param(PatchType.JSON, {"op": "add"}, id="a JSON patch that is not a list"),
        pytest.param(PatchType.MERGE, [{"op": "add"}], id="a merge patch that is not an object"),
        pytest.param(PatchType.STRATEGIC_MERGE, ["a"], id="a strategic patch that is not an object"),
        pytest.param(PatchType.MERGE, {"metadata": {"name": "other"}}, id="another name"),
        pytest.param(PatchType.MERGE, {"metadata": {"namespace": "other"}}, id="another namespace"),
    ],
)
async def test_an_invalid_patch_is_rejected(env: Env, patch_type: PatchType, patch: Any) -> None:
    await env.create("ConfigMap")

    with pytest.raises(BadRequestError) as caught:
        await env.patch("ConfigMap", patch, patch_type=patch_type)
    assert caught.value.code == 400


_SPEC: Final = (
    "selector: {matchLabels: {app: demo}}, "
    "template: {metadata: {labels: {app: demo}}, spec: {containers: [{name: web, image: 'web:1'}]}}"
)


async def test_a_json_patch_replaces_a_missing_value(env: Env) -> None:
    await env.create("ConfigMap", "data: {a: '1'}")
    operation = {"op": "replace", "path": "/data/c", "value": "3"}
    live = await env.patch("ConfigMap", [operation], patch_type=PatchType.JSON)

    assert live["data"] == {"a": "1", "c": "3"}


@pytest.mark.parametrize("path", ["/data/x/y", "/metadata/managedFields/7"])
async def test_a_json_patch_cannot_replace_a_value_in_a_missing_parent(env: Env, path: str) -> None:
    await env.create("ConfigMap", "data: {a: '1'}")

    with env.error(422, "Invalid", "the server rejected our request due to an error in our request"):
        await env.patch("ConfigMap", [{"op": "replace", "path": path, "value": {}}], patch_type=PatchType.JSON)


@pytest.mark.parametrize(
    ("kind", "patch", "problem"),
    [
        pytest.param(
            "ConfigMap",
            "kind: Secret",
            "converting (v1.Secret) to (core.ConfigMap): unknown conversion",
            id="another kind",
        ),
        pytest.param(
            "HorizontalPodAutoscaler",
            "{apiVersion: apps/v1, kind: Deployment}",
            "converting (v1.Deployment) to (autoscaling.HorizontalPodAutoscaler): unknown conversion",
            id="of another group",
        ),
        pytest.param(
            "ConfigMap",
            "apiVersion: foo/v9",
            'no kind "ConfigMap" is registered for version "foo/v9" in scheme "pkg/runtime/scheme.go:111"',
            id="no such version",
        ),
        pytest.param(
            "ConfigMap",
            "{apiVersion: conformance.example.com/v1, kind: Widget}",
            'no kind "Widget" is registered for version "conformance.example.com/v1" in scheme '
            '"pkg/runtime/scheme.go:111"',
            id="a custom kind",
        ),
    ],
)
async def test_a_patch_to_another_kind_is_invalid(env: Env, kind: str, patch: str, problem: str) -> None:
    await env.create(kind)

    with pytest.raises(InvalidError) as caught:
        await env.merge(kind, patch)
    assert caught.value.code == 422
    assert caught.value.message.endswith(f": {problem}")


@pytest.mark.parametrize(
    ("patch", "causes"),
    [
        pytest.param("kind: Gadget", ['kind: Invalid value: "Gadget": must be Widget'], id="another kind"),
        pytest.param(
            "apiVersion: conformance.example.com/v2",
            ['apiVersion: Invalid value: "conformance.example.com/v2": must be conformance.example.com/v1'],
            id="another version",
        ),
        pytest.param(
            "{apiVersion: v1, kind: ConfigMap}",
            [
                'kind: Invalid value: "ConfigMap": must be Widget',
                'apiVersion: Invalid value: "v1": must be conformance.example.com/v1',
            ],
            id="both",
        ),
    ],
)
async def test_a_patch_of_a_custom_resource_keeps_its_kind(env: Env, patch: str, causes: list[str]) -> None:
    await env.create("Widget")

    with env.error(422, "Invalid", None, *(f"FieldValueInvalid {cause}" for cause in causes)):
        await env.merge("Widget", patch)


async def test_a_strategic_merge_patch_ignores_the_kind(env: Env) -> None:
    await env.create("ConfigMap")
    patch = {"kind": "Secret", "data": {"a": "1"}}
    live = await env.patch("ConfigMap", patch, patch_type=PatchType.STRATEGIC_MERGE)

    assert (live["kind"], live["data"]) == ("ConfigMap", {"a": "1"})


async def test_a_patch_may_be_to_another_version_of_the_kind(env: Env) -> None:
    await env.create("HorizontalPodAutoscaler")
    live = await env.merge("HorizontalPodAutoscaler", "apiVersion: autoscaling/v1")

    assert live["apiVersion"] == "autoscaling/v2"


@pytest.mark.parametrize("kind", ["ConfigMap", "Widget", "Gadget"])
async def test_a_patch_that_names_another_uid_is_rejected_for_this_field(env: Env, kind: str) -> None:
    """So a patch that is meant for an object that is gone never changes the next one of its name."""
    made = await env.create(kind)
    with pytest.raises(InvalidError) as caught:
        await env.patch(kind, {"metadata": {"uid": "1-2-3", "labels": {"a": "b"}}}, patch_type=PatchType.MERGE)
    # A real API server gives the same cause twice.
    (cause,) = {*caught.value.causes}
    assert (cause.field, cause.message) == ("metadata.uid", 'Invalid value: "1-2-3": field is immutable')
    assert await env.get(kind) == made
