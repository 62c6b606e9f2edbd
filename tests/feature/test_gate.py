"""Gates: when they are open, and the values they reject."""

import pickle
from dataclasses import FrozenInstanceError
from typing import Any, cast

import pytest

from ocf.errors import ConfigError, ConstraintError, FeatureGateError
from ocf.feature import BooleanGate, Constraint, Gate, VersionGate


class TestVersionGate:
    def test_without_constraints_every_version_opens_it(self) -> None:
        assert VersionGate("0.0.1-alpha").enabled()

    def test_none_is_ignored(self) -> None:
        assert VersionGate("1.0.0", None, ">=1", None) == VersionGate("1.0.0", ">=1")
        assert VersionGate("1.0.0", None).enabled()

    @pytest.mark.parametrize(
        ("version", "expected"),
        [
            pytest.param("1.9.0", False, id="the first refuses"),
            pytest.param("2.5.0", True, id="both admit"),
            pytest.param("3.0.0", False, id="the second refuses"),
        ],
    )
    def test_all_constraints_have_to_admit(self, version: str, *, expected: bool) -> None:
        assert VersionGate(version, ">=2", Constraint("<3")).enabled() is expected

    def test_each_constraint_has_its_own_prerelease_rule(self) -> None:
        """Two constraints are not one group: a prerelease has to pass each of them."""
        assert not VersionGate("1.5.0-rc.1", ">=1.0.0-0", "<2").enabled()
        assert VersionGate("1.5.0-rc.1", ">=1.0.0-0, <2").enabled()

    def test_a_constraint_may_include_prereleases(self) -> None:
        assert VersionGate("1.5.0-rc.1", Constraint(">=1", include_prerelease=True)).enabled()

    def test_the_same_answer_every_time(self) -> None:
        gate = VersionGate("1.5", ">=1")

        assert [gate.enabled() for _ in range(3)] == [True, True, True]

    def test_bad_constraints_fail_when_the_gate_is_built_and_all_are_named(self) -> None:
        with pytest.raises(ConstraintError) as caught:
            VersionGate("not asked yet", "==1", ">=1", "foo")

        assert [line.split(":")[0] for line in str(caught.value).splitlines()] == [
            "version constraint '==1'",
            "version constraint 'foo'",
        ]

    def test_a_list_of_constraints_is_not_a_constraint(self) -> None:
        with pytest.raises(ConstraintError, match="has to be text, got list"):
            VersionGate("1.0.0", cast("Any", [">=1"]))


bad_versions = pytest.mark.parametrize(
    "version",
    [
        pytest.param("", id="empty"),
        pytest.param("latest", id="a tag"),
        pytest.param("1.2.3.4", id="four numbers"),
        pytest.param(None, id="missing"),
        pytest.param(1.31, id="a number from YAML"),
    ],
)


@bad_versions
class TestBadVersion:
    """A version is user's data: building with a bad one is fine, asking is not."""

    def test_it_is_an_error(self, version: Any) -> None:
        gate = VersionGate(version, ">=1")

        with pytest.raises(FeatureGateError, match="is not a version"):
            gate.enabled()

    def test_it_is_an_error_without_constraints(self, version: Any) -> None:
        with pytest.raises(FeatureGateError, match="is not a version"):
            VersionGate(version).enabled()

    def test_it_is_an_error_behind_a_false_condition(self, version: Any) -> None:
        with pytest.raises(FeatureGateError, match="is not a version"):
            VersionGate(version, ">=1").when(False).enabled()

    def test_it_is_an_error_each_time(self, version: Any) -> None:
        gate = VersionGate(version)

        for _ in range(2):
            with pytest.raises(FeatureGateError, match="is not a version"):
                gate.enabled()


class TestIgnoreVendorSuffix:
    @pytest.mark.parametrize(
        ("version", "expected"),
        [
            pytest.param("v1.31.4-gke.1234000", True, id="GKE"),
            pytest.param("1.31.4-eks-1a2b3c", True, id="EKS"),
            pytest.param("1.31.4", True, id="a release"),
            pytest.param("1.31.4-rc.1", False, id="a release candidate stays a prerelease"),
            pytest.param("1.31.3-gke.1", False, id="the release itself is too old"),
        ],
    )
    def test_a_vendor_build_counts_as_its_release(self, version: str, *, expected: bool) -> None:
        assert VersionGate(version, ">=1.31.4", ignore_vendor_suffix=True).enabled() is expected

    def test_by_default_it_is_a_prerelease(self) -> None:
        assert not VersionGate("1.31.4-gke.1", ">=1.29").enabled()

    def test_a_release_is_not_below_itself(self) -> None:
        """As a prerelease, 1.31.4-gke.1 would be older than 1.31.4."""
        assert not VersionGate("1.31.4-gke.1", "<1.31.4-0", ignore_vendor_suffix=True).enabled()

    def test_a_new_gate_keeps_the_switch(self) -> None:
        assert VersionGate("1.31.4-gke.1", ">=1.31", ignore_vendor_suffix=True).when(True).enabled()

    def test_the_switch_is_true_or_false(self) -> None:
        with pytest.raises(ConfigError, match="ignore_vendor_suffix takes True or False, got 'gke'"):
            VersionGate("1.31.4", ignore_vendor_suffix=cast("Any", "gke"))


gates = pytest.mark.parametrize(
    "gate", [pytest.param(VersionGate("1.0.0", ">=1"), id="version"), pytest.param(BooleanGate(True), id="boolean")]
)


@gates
class TestWhen:
    def test_one_false_closes_the_gate_for_good(self, gate: VersionGate | BooleanGate) -> None:
        assert gate.when(True).enabled()
        assert not gate.when(False).enabled()
        assert not gate.when(True).when(False).when(True).enabled()

    def test_it_makes_a_new_gate(self, gate: VersionGate | BooleanGate) -> None:
        closed = gate.when(False)

        assert gate.enabled()
        assert closed != gate

    def test_it_makes_a_new_gate_also_after_the_answer_is_known(self, gate: VersionGate | BooleanGate) -> None:
        assert gate.enabled()
        assert not gate.when(False).enabled()

    def test_gates_are_values(self, gate: VersionGate | BooleanGate) -> None:
        assert gate.when(True) == gate
        assert len({gate, gate.when(True), gate.when(False)}) == 2
        assert pickle.loads(pickle.dumps(gate)) == gate  # noqa: S301 - our own bytes

    def test_a_gate_cannot_be_changed(self, gate: VersionGate | BooleanGate) -> None:
        name = "version" if isinstance(gate, VersionGate) else "value"

        with pytest.raises(FrozenInstanceError):
            setattr(gate, name, "2.0.0")

    @pytest.mark.parametrize(
        "condition",
        [
            pytest.param(None, id="missing"),
            pytest.param("false", id="text"),
            pytest.param(lambda: False, id="a function that was not called"),
        ],
    )
    def test_a_condition_is_true_or_false(self, gate: VersionGate | BooleanGate, condition: Any) -> None:
        with pytest.raises(ConfigError, match=r"when\(\) takes True or False, got"):
            gate.when(condition)

    def test_it_is_a_gate(self, gate: Gate) -> None:
        assert gate.enabled()


class TestBooleanGate:
    @pytest.mark.parametrize("value", [True, False])
    def test_it_is_open_if_its_value_is_true(self, *, value: bool) -> None:
        assert BooleanGate(value).enabled() is value

    def test_its_value_is_true_or_false(self) -> None:
        with pytest.raises(ConfigError, match="a boolean gate takes True or False, got None"):
            BooleanGate(cast("Any", None))
