"""Comparison of rendered files with a folder."""

from hypothesis import given
from hypothesis import strategies as st

from ocf.manifests import differences
from ocf.manifests.folder import generated_for, note

TREES = st.dictionaries(st.sampled_from("abcd"), st.sampled_from(["", "x: 1\n", f"# {note('shops')}\nx: 2\n"]))


@given(wanted=TREES, found=TREES)
def test_a_folder_is_current_exactly_if_every_file_is_and_none_is_left_over(
    wanted: dict[str, str], found: dict[str, str]
) -> None:
    left_over = {path for path, text in found.items() if path not in wanted and generated_for(text)}
    outdated = {path for path, text in wanted.items() if found.get(path) != text}

    assert {each.path for each in differences(wanted, found)} == left_over | outdated


def test_a_difference_shows_its_first_lines() -> None:
    wanted = "".join(f"line {number}\n" for number in range(30))
    (found,) = differences({"roles.yaml": wanted}, {"roles.yaml": ""})

    assert str(found).splitlines() == [
        "roles.yaml differs",
        *(f"  +line {number}" for number in range(10)),
        "  ... and 20 more lines",
    ]


def test_a_file_of_the_user_is_not_left_over() -> None:
    assert differences({}, {"patch.yaml": "a: 1\n"}) == ()
