"""What a release of Kubernetes allows in an HPA."""

import pytest

from ocf.autoscaling import FeatureGates, admitted, validate
from ocf.errors import ConfigError, ManifestError
from ocf.objects import Manifest


def hpa(**spec: object) -> Manifest:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return {"metadata": {"name": "web"}, "spec": {"scaleTargetRef": target, "maxReplicas": 5, **spec}}


TOLERANT = hpa(behavior={"scaleUp": {"tolerance": "0.2"}})
QUEUE = {"type": "External", "external": {"metric": {"name": "q"}, "target": {"type": "Value", "value": "1"}}}
FROM_ZERO = hpa(minReplicas=0, metrics=[QUEUE])


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("1.30", FeatureGates(configurable_tolerance=False, tolerance_known=False, references_checked=False)),
        ("1.32", FeatureGates(configurable_tolerance=False, tolerance_known=False, references_checked=False)),
        ("1.33", FeatureGates(configurable_tolerance=False, references_checked=False)),
        ("1.34", FeatureGates(configurable_tolerance=False)),
        ("1.35", FeatureGates()),
        ("1.36", FeatureGates()),
        ("1.37", FeatureGates(scale_to_zero=True)),
    ],
)
def test_each_release_has_its_defaults(version: str, expected: FeatureGates) -> None:

    assert (
        FeatureGates.of(version) == FeatureGates.of(f"v{version}.3") == FeatureGates.of(f"{version}.1+k3s1") == expected
    )


def test_without_a_word_it_is_the_release_that_was_recorded() -> None:
    assert FeatureGates() == FeatureGates.of("1.36")


@pytest.mark.parametrize("version", ["", "1", "x.y", "1.36x", "latest"])
def test_what_is_no_version_is_refused(version: str) -> None:
    with pytest.raises(ConfigError, match=r"is no version of Kubernetes: write for example 1\.36"):
        FeatureGates.of(version)


@pytest.mark.parametrize("version", ["1.29", "1.38", "2.36"])
def test_a_release_whose_rules_are_not_known_is_refused(version: str) -> None:
    with pytest.raises(ConfigError, match=r"is not known here, must be 1\.30 to 1\.37"):
        FeatureGates.of(version)


class TestTolerance:
    def test_a_server_without_the_field_does_not_know_it(self) -> None:
        with pytest.raises(ManifestError, match=r"spec\.behavior\.scaleUp\.tolerance: unknown field"):
            validate(TOLERANT, gates=FeatureGates.of("1.32"))

    def test_without_its_gate_it_is_dropped_in_silence(self) -> None:
        gates = FeatureGates.of("1.34")

        assert validate(TOLERANT, gates=gates) == ()
        assert "tolerance" not in admitted(TOLERANT, gates=gates)["spec"]["behavior"]["scaleUp"]

    def test_it_stays_where_the_stored_object_has_one(self) -> None:
        stored = admitted(TOLERANT, TOLERANT, gates=FeatureGates.of("1.34"))

        assert stored["spec"]["behavior"]["scaleUp"]["tolerance"] == "200m"

    def test_what_is_dropped_is_not_judged(self) -> None:
        wrong = hpa(behavior={"scaleUp": {"tolerance": "-1"}})

        assert validate(wrong, gates=FeatureGates.of("1.34")) == ()
        assert [error.path for error in validate(wrong)] == ["spec.behavior.scaleUp.tolerance"]


class TestScaleToZero:
    def test_without_its_gate_the_least_is_one(self) -> None:
        assert [str(error) for error in validate(FROM_ZERO)] == [
            "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1"
        ]

    def test_with_its_gate_it_is_allowed(self) -> None:
        assert validate(FROM_ZERO, gates=FeatureGates.of("1.37")) == ()

    def test_what_is_stored_may_stay(self) -> None:
        assert validate(FROM_ZERO, FROM_ZERO) == ()


def test_before_1_34_nobody_looked_at_the_versions_of_references() -> None:
    described = {"apiVersion": "a/b/c", "kind": "Ingress", "name": "main"}
    source = {"describedObject": described, "metric": {"name": "hits"}, "target": {"type": "Value", "value": "1"}}
    odd = hpa(scaleTargetRef={"kind": "Deployment", "name": "web"}, metrics=[{"type": "Object", "object": source}])

    assert validate(odd, gates=FeatureGates.of("1.33")) == ()
    assert [error.path for error in validate(odd, gates=FeatureGates.of("1.34"))] == [
        "spec.scaleTargetRef.apiVersion",
        "spec.metrics[0].object.describedObject.apiVersion",
    ]
