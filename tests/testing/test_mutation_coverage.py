"""Grouping of versions, and the expectations of fixtures."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.testing import Firing, Fixture
from ocf.testing.mutation_coverage import accounting_problems, expectation_problems, version_ranges

FIRING = {"1.8": ["port"], "1.9": ["port", "tls"], "2.0": ["tls"]}


class TestVersionRanges:
    def test_are_in_order_of_their_first_version_though_others_lie_between(self) -> None:
        found = version_ranges({"a": ["x"], "b": [], "c": ["x"]})
        assert [(one.representative, one.versions, one.firing) for one in found] == [
            ("a", ("a", "c"), ("x",)),
            ("b", ("b",), ()),
        ]

    def test_do_not_depend_on_the_order_in_which_mutations_fire(self) -> None:
        assert len(version_ranges({"a": ["x", "y"], "b": ["y", "x"]})) == 1

    @given(st.dictionaries(st.text(max_size=3), st.lists(st.sampled_from("xyz"), unique=True), max_size=8))
    def test_hold_every_version_once_and_differ_from_each_other(self, firing: dict[str, list[str]]) -> None:
        found = version_ranges(firing)
        assert sorted(version for regime in found for version in regime.versions) == sorted(firing)
        assert len({frozenset(regime.firing) for regime in found}) == len(found)
        for regime in found:
            assert regime.versions[0] == regime.representative
            assert all(set(firing[version]) == set(regime.firing) for version in regime.versions)


@pytest.mark.parametrize(
    ("requires", "forbids", "problem"),
    [
        pytest.param(["tls"], [], "", id="fires somewhere"),
        pytest.param(["old"], [], '"old" must fire at some version, and fires at none of 1.8, 1.9, 2.0', id="nowhere"),
        pytest.param([Firing("tls", at="2.0")], [], "", id="fires there"),
        pytest.param([Firing("tls", at="1.8")], [], '"tls" must fire at 1.8, where port fires', id="not there"),
        pytest.param([], ["old"], "", id="forbidden and nowhere"),
        pytest.param([], ["tls"], '"tls" must fire at no version, and fires at 1.9, 2.0', id="forbidden somewhere"),
        pytest.param([], [Firing("tls", at="1.8")], "", id="forbidden and not there"),
        pytest.param([], [Firing("tls", at="1.9")], '"tls" must not fire at 1.9, and does', id="forbidden there"),
        pytest.param([Firing("port")], [], "", id="without a version it is a name"),
    ],
)
def test_expectations(requires: list[str | Firing], forbids: list[str | Firing], problem: str) -> None:
    fixture = Fixture(name="small", spec=None, requires=requires, forbids=forbids)
    assert list(expectation_problems(fixture, FIRING)) == ([f"small: {problem}"] if problem else [])


def test_every_unmet_expectation_is_reported() -> None:
    fixture = Fixture(name="small", spec=None, requires=["a", "b"], forbids=["tls"])
    assert len(list(expectation_problems(fixture, FIRING))) == 3


@pytest.mark.parametrize(
    ("registered", "required", "forbidden", "excluded", "problem"),
    [
        pytest.param(["a"], ["a"], [], [], "", id="required"),
        pytest.param(["a"], [], [], ["a"], "", id="excluded"),
        pytest.param(["a"], [], [], [], 'mutation "a" is neither required by a fixture nor excluded', id="forgotten"),
        pytest.param(["a"], [], ["a"], [], 'mutation "a" is neither required', id="forbidding is not enough"),
        pytest.param([], ["a"], [], [], '"a" is required, but no mutation of that name', id="stale requirement"),
        pytest.param([], [], ["a"], [], '"a" is forbidden, but no mutation of that name', id="stale prohibition"),
        pytest.param([], [], [], ["a"], '"a" is excluded, but no mutation of that name', id="stale exclusion"),
        pytest.param(["a"], ["a"], [], ["a"], '"a" is excluded, although a fixture requires it', id="both"),
        pytest.param([""], [], [], [], "a mutation without a name is registered", id="no name"),
    ],
)
def test_accounting(
    registered: list[str], required: list[str], forbidden: list[str], excluded: list[str], problem: str
) -> None:
    found = list(accounting_problems(registered, required=required, forbidden=forbidden, excluded=excluded))
    assert len(found) == bool(problem)
    assert all(one.startswith(problem) for one in found)
