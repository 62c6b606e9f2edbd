"""Laws that comparators keep, whatever their operands."""

from hypothesis import assume, given
from hypothesis import strategies as st

from ocf.feature import Constraint

versions = st.builds(
    "{}.{}.{}{}".format,
    st.integers(0, 4),
    st.integers(0, 4),
    st.integers(0, 4),
    st.sampled_from(["", "", "", "-0", "-alpha", "-alpha.1", "-rc.2"]),
)
operators = st.sampled_from(["", "=", "!=", ">", "<", ">=", "<=", "~", "^"])
operands = st.one_of(versions, st.builds("{}.{}".format, st.integers(0, 4), st.integers(0, 4)), st.sampled_from("x012"))
comparators = st.builds("{}{}".format, operators, operands)


@given(left=comparators, right=comparators, version=versions)
def test_or_admits_what_either_side_admits(left: str, right: str, version: str) -> None:
    either = Constraint(left).check(version) or Constraint(right).check(version)

    assert Constraint(f"{left} || {right}").check(version) == either


@given(left=comparators, right=comparators, version=versions, joint=st.sampled_from([",", ", ", " ", " , "]))
def test_and_admits_what_both_sides_admit(left: str, right: str, version: str, joint: str) -> None:
    """Prereleases included; without them one side may open the other's door."""
    sides = [Constraint(text, include_prerelease=True).check(version) for text in (left, right)]

    assert Constraint(f"{left}{joint}{right}", include_prerelease=True).check(version) == all(sides)


@given(operand=operands, version=versions.filter(lambda text: "-" not in text))
def test_not_equal_is_the_opposite_of_equal_for_releases(operand: str, version: str) -> None:
    assume(operand != "x")  # `=x` is any version, `!=x` is all but 0.0.0: so the reference has it
    assert Constraint(f"!={operand}").check(version) != Constraint(f"={operand}").check(version)


@given(operand=operands, version=versions)
def test_at_least_and_below_part_all_versions(operand: str, version: str) -> None:
    sides = [Constraint(f"{op}{operand}", include_prerelease=True).check(version) for op in (">=", "<")]

    assert sorted(sides) == [False, True]


@given(operand=operands.filter(lambda text: text != "x"), version=versions)
def test_above_and_at_most_part_all_versions(operand: str, version: str) -> None:
    sides = [Constraint(f"{op}{operand}", include_prerelease=True).check(version) for op in (">", "<=")]

    assert sorted(sides) == [False, True]


@given(major=st.integers(1, 9), minor=st.integers(0, 9), patch=st.integers(0, 9), version=versions)
def test_caret_runs_up_to_the_next_major(major: int, minor: int, patch: int, version: str) -> None:
    spelled_out = Constraint(f">={major}.{minor}.{patch}, <{major + 1}").check(version)

    assert Constraint(f"^{major}.{minor}.{patch}").check(version) == spelled_out


@given(major=st.integers(0, 9), minor=st.integers(0, 9), patch=st.integers(0, 9), version=versions)
def test_tilde_runs_up_to_the_next_minor(major: int, minor: int, patch: int, version: str) -> None:
    assume((major, minor, patch) != (0, 0, 0))  # `~0.0.0` is any version: so the reference has it
    spelled_out = Constraint(f">={major}.{minor}.{patch}, <{major}.{minor + 1}").check(version)

    assert Constraint(f"~{major}.{minor}.{patch}").check(version) == spelled_out


@given(low=operands, high=operands, version=versions)
def test_a_hyphen_range_is_its_two_comparators(low: str, high: str, version: str) -> None:
    assert Constraint(f"{low} - {high}").check(version) == Constraint(f">={low}, <={high}").check(version)


@given(constraint=comparators, version=versions)
def test_including_prereleases_only_ever_adds(constraint: str, version: str) -> None:
    assert Constraint(constraint).check(version) <= Constraint(constraint, include_prerelease=True).check(version)
