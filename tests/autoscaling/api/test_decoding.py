"""The decoder rejects a manifest that is not an HPA, field by field."""

import contextlib
import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.client import V2CrossVersionObjectReference, V2HorizontalPodAutoscaler, V2HorizontalPodAutoscalerSpec

from ocf.autoscaling import FieldError, admitted, decode, default, validate, validate_scale, validate_status
from ocf.errors import ManifestError
from ocf.objects import Manifest, Quantity

HPA: Manifest = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "maxReplicas": 5,
        "metrics": [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}},
            }
        ],
        "behavior": {"scaleDown": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}},
    },
}


def changed(path: str, value: Any) -> Manifest:
    manifest = copy.deepcopy(HPA)
    inner: Any = manifest
    *parents, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    for part in parents:
        inner = inner[part]
    inner[last] = value
    return manifest


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        pytest.param("spec", [], "spec: must be a map, not a list", id="list for a map"),
        pytest.param("spec.metrics", {}, "spec.metrics: must be a list, not a map", id="map for a list"),
        pytest.param("spec.maxReplicas", "5", "maxReplicas: must be an integer from -2147483648 to 214", id="text"),
        pytest.param("spec.maxReplicas", 2.5, "from -2147483648 to 2147483647, not 2.5", id="fraction"),
        pytest.param("spec.maxReplicas", 5.0, "not 5.0", id="whole float"),
        pytest.param("spec.maxReplicas", True, "not True", id="boolean for a number"),
        pytest.param("spec.maxReplicas", 2**31, "not 2147483648", id="beyond 32 bits"),
        pytest.param("spec.maxReplicas", 10**5000, "not a huge integer", id="huge"),
        pytest.param("metadata.labels", {"a": 1}, "metadata.labels.a: must be a text, not 1", id="label"),
        pytest.param("metadata.creationTimestamp", "now", "must be a time like 2026-01-31T12:00:00Z", id="time"),
        pytest.param("kind", "Scale", "kind: must be HorizontalPodAutoscaler, not 'Scale'", id="another kind"),
        pytest.param("apiVersion", "autoscaling/v1", "apiVersion: must be autoscaling/v2", id="another version"),
        pytest.param("spec.maxReplica", 5, 'spec.maxReplica: unknown field, did you mean "maxReplicas"?', id="typo"),
        pytest.param("spec.max_replicas", 5, 'unknown field, did you mean "maxReplicas"?', id="snake case"),
        pytest.param("spec.MAXREPLICAS", 5, 'unknown field, did you mean "maxReplicas"?', id="upper case"),
        pytest.param("spec.xyz", None, "spec.xyz: unknown field", id="unknown and null"),
        pytest.param(
            "spec.scaleTargetRef.namespace",
            "shop",
            "spec.scaleTargetRef.namespace: unknown field, remove it: the object is always in the namespace of the",
            id="the namespace of the target",
        ),
        pytest.param(
            "spec.metrics.0.resource.target.averageUtilisation",
            5,
            'spec.metrics[0].resource.target.averageUtilisation: unknown field, did you mean "averageUtilization"?',
            id="in a list",
        ),
        pytest.param(
            "spec.metrics.0.resource.target.averageValue", "1K", "averageValue: '1K' is not a quantity", id="quantity"
        ),
        pytest.param("spec.behavior.scaleDown.tolerance", True, "True is not a quantity", id="boolean for a quantity"),
        pytest.param("spec.maxReplicas", "x" * 1000, "x…", id="a long value is cut"),
    ],
)  # fmt: skip
def test_a_problem_names_the_field_the_value_and_the_allowed_values(path: str, value: Any, problem: str) -> None:
    with pytest.raises(ManifestError) as caught:
        validate(changed(path, value))

    assert problem in str(caught.value)
    assert str(caught.value).startswith("HorizontalPodAutoscaler shop/web: ")
    assert len(str(caught.value)) < 250


def test_all_problems_are_reported_at_once() -> None:
    manifest = changed("spec", {"maxReplicas": "x", "minReplicas": [], "metrics": [{"type": 5}, None, 7], "foo": 1})

    with pytest.raises(ManifestError) as caught:
        decode(manifest)

    paths = [problem.path for problem in caught.value.problems]
    assert paths == ["spec.maxReplicas", "spec.minReplicas", "spec.metrics[0].type", "spec.metrics[2]", "spec.foo"]


@pytest.mark.parametrize("value", ["text", 5, None, [], True])
def test_a_value_that_is_not_a_map_is_rejected(value: Any) -> None:
    with pytest.raises(ManifestError, match=r"^HorizontalPodAutoscaler: must be a map, not "):
        decode(value)


def test_keys_that_are_not_texts_are_rejected() -> None:
    with pytest.raises(ManifestError, match="5: unknown field"):
        decode({5: "x"})
    with pytest.raises(ManifestError, match=r"metadata\.labels: must be a text, not 5"):
        decode({"metadata": {"labels": {5: "x"}}})


def test_nulls_are_dropped_and_become_empty_values_in_lists_and_maps() -> None:
    manifest = {
        "metadata": {"labels": {"a": None}, "finalizers": [None]},
        "spec": {"metrics": [None], "behavior": None},
    }

    assert decode(manifest) == {"metadata": {"labels": {"a": ""}, "finalizers": [""]}, "spec": {"metrics": [{}]}}


def test_kind_and_version_may_be_missing() -> None:
    assert validate({key: HPA[key] for key in ("metadata", "spec")}) == ()


def test_times_are_kept_in_whole_seconds_of_utc() -> None:
    decoded = decode({"metadata": {"creationTimestamp": "2026-01-31T12:00:00.75+01:00"}})

    assert decoded == {"metadata": {"creationTimestamp": "2026-01-31T11:00:00Z"}}


@pytest.mark.parametrize(
    ("given_value", "kept"), [("1024Mi", "1Gi"), (" 1000m ", "1"), (0.25, "250m"), ("1e3", "1e3"), ("m", "0")], ids=repr
)
def test_quantities_are_kept_in_the_servers_notation(given_value: Any, kept: str) -> None:
    decoded = decode(changed("spec.metrics.0.resource.target.averageValue", given_value))

    assert decoded["spec"]["metrics"][0]["resource"]["target"]["averageValue"] == kept


def test_models_of_the_client_are_accepted() -> None:
    target = V2CrossVersionObjectReference(api_version="apps/v1", kind="Deployment", name="web")
    model = V2HorizontalPodAutoscaler(spec=V2HorizontalPodAutoscalerSpec(scale_target_ref=target, max_replicas=-1))

    paths = ["metadata.name", "spec.maxReplicas", "spec.maxReplicas"]
    assert [error.path for error in validate(model)] == paths
    assert admitted(model)["spec"]["minReplicas"] == 1


def test_without_strictness_unknown_fields_are_dropped() -> None:
    """A wrong type is still rejected."""
    assert decode({"spec": {"maxReplicas": 3, "foo": 1}}, strict=False) == {"spec": {"maxReplicas": 3}}
    with pytest.raises(ManifestError, match=r"^HorizontalPodAutoscaler: spec\.maxReplicas: must be"):
        decode({"spec": {"maxReplicas": "3", "foo": 1}}, strict=False)


def test_a_stored_object_may_have_fields_of_a_newer_server() -> None:
    assert validate(HPA, {**HPA, "spec": {**HPA["spec"], "futureField": 1}}) == ()


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner)
)
PLACES = [
    "metadata",
    "metadata.labels",
    "metadata.ownerReferences",
    "metadata.finalizers",
    "spec",
    "spec.scaleTargetRef",
    "spec.minReplicas",
    "spec.metrics",
    "spec.metrics.0",
    "spec.metrics.0.resource.target",
    "spec.behavior",
    "spec.behavior.scaleDown",
    "spec.behavior.scaleDown.policies.0",
    "status",
]
manifests = st.builds(changed, st.sampled_from(PLACES), anything)


class TestLaws:
    @given(anything | manifests)
    def test_every_json_value_is_decoded_or_rejected(self, value: Any) -> None:
        """The result is a list of errors, or an exception that names the problem."""
        judges: list[Callable[[Any], tuple[FieldError, ...]]] = [
            validate,
            validate_scale,
            lambda each: validate_status(each, HPA),
            lambda each: validate(each, HPA),
        ]
        for check in judges:
            with contextlib.suppress(ManifestError):
                assert all(str(error) for error in check(value))

    @given(manifests)
    def test_defaults_are_valid(self, manifest: Manifest) -> None:
        """An accepted manifest is accepted with its defaults, and setting them again changes nothing."""
        try:
            errors = validate(manifest)
        except ManifestError:
            return
        if not errors:
            filled = default(manifest)
            assert validate(filled) == ()
            assert default(filled) == filled

    @given(manifests)
    def test_a_stored_object_is_stored_again_unchanged(self, manifest: Manifest) -> None:
        try:
            stored = admitted(manifest)
        except ManifestError:
            return
        assert admitted(stored) == stored

    @given(manifests)
    def test_the_input_is_not_changed(self, manifest: Manifest) -> None:
        before = repr(manifest)
        with contextlib.suppress(ManifestError):
            admitted(manifest)["metadata"]["labels"] = {"changed": "yes"}

        assert repr(manifest) == before

    @given(st.integers(-(10**30), 10**30), st.sampled_from(["", "m", "k", "Mi", "n"]))
    def test_quantities_keep_their_number_and_print_the_same_again(self, number: int, suffix: str) -> None:
        decoded = decode(changed("spec.metrics.0.resource.target.averageValue", f"{number}{suffix}"))
        text = decoded["spec"]["metrics"][0]["resource"]["target"]["averageValue"]

        assert Quantity.parse(text) == Quantity.parse(f"{number}{suffix}")
        assert str(Quantity.parse(str(Quantity.parse(text)))) == str(Quantity.parse(text))
