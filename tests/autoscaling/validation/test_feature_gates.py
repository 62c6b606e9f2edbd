"""Validation by the feature gates of a release."""

import pytest

from ocf.autoscaling import FeatureGates, FieldError, admitted, validate, validate_scale, validate_status
from ocf.errors import ManifestError
from ocf.objects import Manifest


def hpa(**spec: object) -> Manifest:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return {"metadata": {"name": "web"}, "spec": {"scaleTargetRef": target, "maxReplicas": 5, **spec}}


TOLERANT = hpa(behavior={"scaleUp": {"tolerance": "0.2"}})
QUEUE = {"type": "External", "external": {"metric": {"name": "q"}, "target": {"type": "Value", "value": "1"}}}
FROM_ZERO = hpa(minReplicas=0, metrics=[QUEUE])


class TestTolerance:
    def test_a_server_without_the_field_rejects_it(self) -> None:
        with pytest.raises(ManifestError, match=r"spec\.behavior\.scaleUp\.tolerance: unknown field"):
            validate(TOLERANT, gates=FeatureGates.for_release("1.32"))

    def test_without_its_gate_it_is_dropped_silently(self) -> None:
        gates = FeatureGates.for_release("1.34")

        assert validate(TOLERANT, gates=gates) == ()
        assert "tolerance" not in admitted(TOLERANT, gates=gates)["spec"]["behavior"]["scaleUp"]

    def test_it_is_kept_if_the_stored_object_has_one(self) -> None:
        stored = admitted(TOLERANT, TOLERANT, gates=FeatureGates.for_release("1.34"))

        assert stored["spec"]["behavior"]["scaleUp"]["tolerance"] == "200m"

    def test_a_dropped_tolerance_is_not_validated(self) -> None:
        wrong = hpa(behavior={"scaleUp": {"tolerance": "-1"}})

        assert validate(wrong, gates=FeatureGates.for_release("1.34")) == ()
        assert [error.path for error in validate(wrong)] == ["spec.behavior.scaleUp.tolerance"]


class TestScaleToZero:
    def test_without_its_gate_the_minimum_is_one(self) -> None:
        assert [str(error) for error in validate(FROM_ZERO)] == [
            "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1"
        ]

    def test_with_its_gate_it_is_allowed(self) -> None:
        assert validate(FROM_ZERO, gates=FeatureGates.for_release("1.37")) == ()

    def test_a_stored_zero_may_stay(self) -> None:
        assert validate(FROM_ZERO, FROM_ZERO) == ()


def test_the_api_versions_of_references_are_validated_from_1_34() -> None:
    described = {"apiVersion": "a/b/c", "kind": "Ingress", "name": "main"}
    source = {"describedObject": described, "metric": {"name": "hits"}, "target": {"type": "Value", "value": "1"}}
    odd = hpa(scaleTargetRef={"kind": "Deployment", "name": "web"}, metrics=[{"type": "Object", "object": source}])

    assert validate(odd, gates=FeatureGates.for_release("1.33")) == ()
    assert [error.path for error in validate(odd, gates=FeatureGates.for_release("1.34"))] == [
        "spec.scaleTargetRef.apiVersion",
        "spec.metrics[0].object.describedObject.apiVersion",
    ]


@pytest.mark.parametrize(("release", "known"), [("1.36", False), ("1.37", True)])
def test_conditions_have_a_generation_since_a_release(release: str, known: bool) -> None:
    manifest = {**hpa(), "status": {"conditions": [{"type": "AbleToScale", "observedGeneration": 3}]}}
    gates = FeatureGates.for_release(release)
    if known:
        assert validate(manifest, gates=gates) == ()
    else:
        with pytest.raises(ManifestError, match=r"status.conditions\[0\].observedGeneration: unknown field"):
            validate(manifest, gates=gates)


NEWER, OLDER = FeatureGates.for_release("1.37"), FeatureGates.for_release("1.36")
WRONG_TYPE = {"type": "pods"}


def texts(errors: tuple[FieldError, ...]) -> list[str]:
    return [str(error) for error in errors]


def test_rules_that_the_type_declares_are_the_last_ones_from_1_37() -> None:
    """As kube-apiserver 1.37.2 answers; there, `minReplicas` is a rule of the type as well."""
    wrong = hpa(maxReplicas=0, minReplicas=-1, scaleTargetRef={"apiVersion": "apps/v1", "kind": "Deployment"})
    least = "spec.minReplicas: Invalid value: -1: must be greater than or equal to"
    target = "spec.scaleTargetRef.name: Required value"
    most = "spec.maxReplicas: Required value"

    assert texts(validate(wrong, gates=OLDER)) == [f"{least} 1", f"{most}: must be set and greater than 0", target]
    assert texts(validate(wrong, gates=NEWER)) == [target, f"{least} 0", most]


def test_a_declared_rule_is_not_one_of_an_update_that_keeps_the_value() -> None:
    """The written rule stays, in its own place and with its own text."""
    kept, missing = hpa(maxReplicas=0, minReplicas=0, metrics=[QUEUE]), {"apiVersion": "apps/v1", "kind": "Deployment"}
    changed = hpa(maxReplicas=0, minReplicas=0, metrics=[QUEUE], scaleTargetRef=missing)

    assert texts(validate(changed, kept, gates=NEWER)) == [
        "spec.maxReplicas: Required value: must be set and greater than 0",
        "spec.scaleTargetRef.name: Required value",
    ]


@pytest.mark.parametrize(("gates", "times"), [(OLDER, 2), (NEWER, 1)])
def test_an_error_is_reported_once_from_1_37(gates: FeatureGates, times: int) -> None:
    stored = {**hpa(), "metadata": {"name": "web", "uid": "a"}}
    other = {**hpa(metrics=[WRONG_TYPE]), "metadata": {"name": "web", "uid": "b"}}
    immutable = 'metadata.uid: Invalid value: "b": field is immutable'

    assert texts(validate(other, stored, gates=gates)).count(immutable) == times
    assert texts(validate_status(other, stored, gates=gates)).count(immutable) == times
    assert len([error for error in validate(other, stored, gates=gates) if error.path.endswith("type")]) == times


@pytest.mark.parametrize(("gates", "paths"), [(OLDER, ["metadata.name", "spec.replicas"]), (NEWER, ["spec.replicas"])])
def test_the_metadata_of_a_scale_is_validated_until_1_36(gates: FeatureGates, paths: list[str]) -> None:
    scale = {"metadata": {"name": "-"}, "spec": {"replicas": -1}}

    assert [error.path for error in validate_scale(scale, gates=gates)] == paths


def test_the_api_server_counts_generations_from_1_37() -> None:
    """So it ignores one that is sent, and checks those of the conditions."""
    numbered = {**hpa(), "metadata": {"name": "web", "generation": -1}}
    seen = {**hpa(), "status": {"conditions": [{"type": "AbleToScale", "observedGeneration": -3}]}}

    assert [error.path for error in validate(numbered, gates=OLDER)] == ["metadata.generation"]
    assert validate(numbered, gates=NEWER) == ()
    assert texts(validate_status(seen, hpa(), gates=NEWER)) == [
        "status.conditions[0].observedGeneration: Invalid value: -3: must be greater than or equal to 0"
    ]
