"""A constraint means what it means to Go's Masterminds/semver."""

import copy
import json
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest
from semver import Version

from ocf.errors import ConstraintError, FeatureGateError
from ocf.feature import Constraint

REFERENCE = json.loads((Path(__file__).parent / "masterminds-3.4.0.json").read_text(encoding="utf-8"))["rows"]


def answer(constraint: str, version: str, *, include_prerelease: bool = False) -> str:
    """T or F; E where the constraint is refused, V where the version is."""
    try:
        return "T" if Constraint(constraint, include_prerelease=include_prerelease).check(version) else "F"
    except ConstraintError:
        return "E"
    except FeatureGateError:
        return "V"


@pytest.mark.parametrize(
    ("constraint", "version", "expected"),
    [
        pytest.param(">= 1.2.0, < 2.0.0", "1.5.0", "T", id="comma and spaces join"),
        pytest.param(">= 1.2.0, < 2.0.0", "1.5.0-rc.1", "F", id="a prerelease inside a range of releases"),
        pytest.param(">= 1.2.0, < 2.0.0", "2.0.0-rc.1", "F", id="a prerelease at the upper bound"),
        pytest.param(">=1.2.0 <2.0.0", "1.5.0", "T", id="a space joins"),
        pytest.param(">=1.2.0,<2.0.0", "1.5.0", "T", id="a comma alone joins"),
        pytest.param("^1.2", "1.9.9", "T", id="caret of a partial version"),
        pytest.param("^1.2", "2.0.0", "F", id="caret ends before the next major"),
        pytest.param("^0.2.3", "0.2.9", "T", id="caret below 1 keeps the minor"),
        pytest.param("^0.2.3", "0.3.0", "F", id="caret below 1 ends before the next minor"),
        pytest.param("^0", "0.9.0", "T", id="caret of zero keeps the major"),
        pytest.param("~1.2", "1.2.9", "T", id="tilde of a partial version"),
        pytest.param("~1.2", "1.3.0", "F", id="tilde ends before the next minor"),
        pytest.param("~>1.2.3", "1.2.9", "T", id="tilde-greater is tilde"),
        pytest.param("1.x", "1.4.0", "T", id="x stands for any minor"),
        pytest.param("1.x", "2.0.0", "F", id="x does not stand for another major"),
        pytest.param("*", "1.0.0-beta.1", "F", id="star admits no prerelease"),
        pytest.param("1.2", "1.2.5", "T", id="a bare partial version is a range"),
        pytest.param("=1.2.3", "1.2.3", "T", id="equals"),
        pytest.param("==1.2.3", "1.2.3", "E", id="double equals is refused"),
        pytest.param("!=1.2.3", "1.2.3", "F", id="not equals"),
        pytest.param("!=1.2.x", "1.2.4", "F", id="not equals of a partial version"),
        pytest.param(">1.2", "1.2.5", "F", id="greater than all of a minor"),
        pytest.param("<=1.2", "1.2.5", "T", id="up to the end of a minor"),
        pytest.param("^1.2 || ^3", "3.4.0", "T", id="alternatives"),
        pytest.param("1.2 - 1.4", "1.4.9", "T", id="hyphen range up to the end of a minor"),
        pytest.param(">=1.2.0-0", "1.3.0-alpha.1", "T", id="a comparator names a prerelease"),
        pytest.param(">=1.2.0", "1.3.0-alpha.1", "F", id="no comparator names a prerelease"),
        pytest.param(">=1.2.3-alpha.1, <2.0.0", "2.0.0-rc.1", "T", id="one naming comparator opens its group"),
        pytest.param(">1.0.0-0, <2.0.0-0", "2.0.0-alpha", "F", id="an upper bound below all prereleases"),
        pytest.param(">=1.2", "1.5", "T", id="a short version"),
        pytest.param(">=1.2.0", "v1.5.0", "T", id="a version with v"),
        pytest.param("=1.2.3+a", "1.2.3+b", "T", id="builds do not count"),
        pytest.param(">=1.29.0", "1.31.4-gke.1234000", "F", id="a vendor suffix is a prerelease"),
        pytest.param(">=1.29.0-0", "1.31.4-eks-1a2b3c", "T", id="a vendor suffix where prereleases are named"),
        pytest.param(">=1.29.0", "1.31.4+k3s1", "T", id="a vendor build is a release"),
        pytest.param("", "1.2.3", "E", id="empty is refused"),
        pytest.param("foo", "1.2.3", "E", id="a word is refused"),
        pytest.param(">=1.2.0,", "1.2.3", "E", id="a trailing comma is refused"),
    ],
)
def test_the_rules_operator_authors_rely_on(constraint: str, version: str, expected: str) -> None:
    assert answer(constraint, version) == expected


@pytest.mark.parametrize(
    ("constraint", "version", "plain", "with_prereleases"),
    [pytest.param(*row, id=f"{row[0]!a} {row[1]!a}") for row in REFERENCE],
)
def test_answers_of_the_reference(constraint: str, version: str, plain: str, with_prereleases: str) -> None:
    assert answer(constraint, version) == plain
    assert answer(constraint, version, include_prerelease=True) == with_prereleases


def test_the_reference_has_every_kind_of_answer() -> None:
    assert {kind for row in REFERENCE for kind in row[2:]} == {"T", "F", "E", "V"}
    assert len(REFERENCE) >= 300


class TestValue:
    def test_equal_texts_are_equal_constraints(self) -> None:
        assert Constraint(">=1") == Constraint(">=1")
        assert len({Constraint(">=1"), Constraint(">=1"), Constraint(">= 1")}) == 2

    def test_including_prereleases_makes_another_constraint(self) -> None:
        assert Constraint(">=1") != Constraint(">=1", include_prerelease=True)

    def test_it_cannot_be_changed(self) -> None:
        with pytest.raises(FrozenInstanceError):
            Constraint(">=1").text = ">=2"  # type: ignore[misc] # the point of the test

    def test_it_is_written_as_it_was_read(self) -> None:
        assert str(Constraint(" >=1,  <2")) == " >=1,  <2"
        assert repr(Constraint(">=1")) == "Constraint(text='>=1', include_prerelease=False)"

    @pytest.mark.parametrize(
        "clone",
        [
            pytest.param(copy.copy, id="copy"),
            pytest.param(copy.deepcopy, id="deep copy"),
            pytest.param(lambda value: pickle.loads(pickle.dumps(value)), id="pickle"),  # noqa: S301 - our own bytes
        ],
    )
    def test_a_copy_answers_alike(self, clone: Callable[[Constraint], Constraint]) -> None:
        """Gates travel to other processes."""
        constraint = clone(Constraint("!=1.2, >=1-0"))

        assert (constraint.check("1.3.0-rc.1"), constraint.check("1.2.0")) == (True, False)

    def test_a_version_that_was_read_before_is_taken(self) -> None:
        assert Constraint("^1.2").check(Version.parse("1.3.0"))
        assert not Constraint("^1.2").check(Version.parse("1.3.0-rc.1"))

    def test_a_version_is_taken_whatever_its_parts_hold(self) -> None:
        """`semver.Version` checks nothing when it is built from parts."""
        assert Constraint("*").check(Version(10**30))
        assert not Constraint("*").check(Version(1, prerelease="²." + "9" * 5000))
