"""Versions are read loosely and ordered as semver.org says."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from semver import Version

from ocf.errors import FeatureGateError
from ocf.feature.versions import parse_version, read_version, release_of, shown, version_order


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("1.2.3", "1.2.3", id="full"),
        pytest.param("1", "1.0.0", id="major alone"),
        pytest.param("1.5", "1.5.0", id="major and minor"),
        pytest.param("v1.5.0", "1.5.0", id="with v"),
        pytest.param("01.002.0003", "1.2.3", id="leading zeros"),
        pytest.param("1.5-rc.1+build.7", "1.5.0-rc.1+build.7", id="short with prerelease and build"),
        pytest.param("1.31.4-eks-1a2b3c", "1.31.4-eks-1a2b3c", id="hyphens in the prerelease"),
        pytest.param("18446744073709551615.0.0", "18446744073709551615.0.0", id="the largest number"),
    ],
)
def test_loose_spellings_are_versions(text: str, expected: str) -> None:
    assert str(read_version(text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("v", id="v alone"),
        pytest.param("V1", id="a capital V"),
        pytest.param("latest", id="a tag"),
        pytest.param("1.2.3.4", id="four numbers"),
        pytest.param("1.", id="a trailing dot"),
        pytest.param("1.x", id="a wildcard"),
        pytest.param("-1", id="a sign"),
        pytest.param(" 1.2.3", id="a leading space"),
        pytest.param("1.2.3\n", id="a trailing newline"),
        pytest.param("1.2.3-", id="an empty prerelease"),
        pytest.param("1.2.3-01", id="a prerelease with a leading zero"),
        pytest.param("1.2.3-a..b", id="an empty identifier"),
        pytest.param("1.2.3_4", id="an underscore"),
        pytest.param("\u0661", id="a digit that is not ASCII"),
        pytest.param("18446744073709551616", id="more than 64 bits"),
        pytest.param("1.2.3-" + "a" * 251, id="more than 256 characters"),
    ],
)
def test_other_texts_are_not_versions(text: str) -> None:
    assert read_version(text) is None


@pytest.mark.parametrize(
    ("value", "named"),
    [
        pytest.param("", "''", id="empty"),
        pytest.param("latest", "'latest'", id="a tag"),
        pytest.param(None, "None", id="missing"),
        pytest.param(1.31, "float 1.31", id="a number from YAML"),
        pytest.param("1" * 1000, f"'{'1' * 80}'… (1000 characters)", id="shortened"),
    ],
)
def test_the_error_names_the_value_and_what_to_write(value: object, named: str) -> None:
    with pytest.raises(FeatureGateError) as caught:
        parse_version(value)

    assert str(caught.value).startswith(f"{named} is not a version: write MAJOR.MINOR.PATCH as text, such as '1.31.4'")


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        pytest.param("1.31.4-gke.1234000", "1.31.4", id="GKE"),
        pytest.param("1.31.4-eks-1a2b3c", "1.31.4", id="EKS"),
        pytest.param("1.30.1-aliyun.1", "1.30.1", id="a word that begins with a"),
        pytest.param("1.29.2-r0-29.0.13.12", "1.29.2", id="a word that begins with r"),
        pytest.param("1.29.2-rcloud.1", "1.29.2", id="a word that only begins with rc"),
        pytest.param("1.31.4-5+0123456789abcd", "1.31.4+0123456789abcd", id="commits after a release; the build stays"),
        pytest.param("1.31.4+k3s1", "1.31.4+k3s1", id="no prerelease"),
        pytest.param("1.31.4", "1.31.4", id="a release"),
        pytest.param("1.32.0-alpha.1.123+abc", "1.32.0-alpha.1.123+abc", id="alpha"),
        pytest.param("1.32.0-beta.0", "1.32.0-beta.0", id="beta"),
        pytest.param("1.32.0-rc.1", "1.32.0-rc.1", id="release candidate"),
        pytest.param("1.32.0-rc1+k3s1", "1.32.0-rc1+k3s1", id="release candidate of k3s"),
        pytest.param("1.32.0-rc.1-gke.5", "1.32.0-rc.1-gke.5", id="a vendor's build of a release candidate"),
    ],
)
def test_a_vendor_suffix_is_dropped_and_a_prerelease_of_kubernetes_is_not(version: str, expected: str) -> None:
    assert str(release_of(Version.parse(version))) == expected


numeric = st.integers(0, 2**64 - 1).map(str)
identifiers = st.one_of(
    numeric, st.integers(0, 3).map(str), st.from_regex(r"[0-9]{0,2}[A-Za-z-][0-9A-Za-z-]{0,2}", fullmatch=True)
)
small = st.integers(0, 2)
versions = st.builds(
    Version, small, small, small, st.one_of(st.none(), st.lists(identifiers, min_size=1, max_size=3).map(".".join))
)


class TestOrder:
    @given(left=versions, right=versions)
    def test_it_is_the_order_of_semver(self, left: Version, right: Version) -> None:
        expected = left.compare(right)

        one, other = version_order(left), version_order(right)

        assert (one > other) - (one < other) == expected

    def test_builds_do_not_count(self) -> None:
        assert version_order(Version.parse("1.2.3+a")) == version_order(Version.parse("1.2.3+b"))

    def test_the_example_of_semver_org(self) -> None:
        words = ["alpha", "alpha.1", "alpha.beta", "beta", "beta.2", "beta.11", "rc.1"]
        orders = [version_order(Version.parse(f"1.0.0-{word}")) for word in words] + [version_order(Version(1))]

        assert all(one < other for one, other in pairwise(orders))

    def test_numbers_beyond_64_bits_are_texts(self) -> None:
        """Here Masterminds/semver leaves the specification, and Go's answers are the ones that count."""
        order = [version_order(Version(1, prerelease=text)) for text in ("2", "18446744073709551616", "3" * 21, "a")]

        assert order == sorted(order)
        assert version_order(Version(1, prerelease="1" * 30)) < version_order(Version(1, prerelease="2" * 20 + "2"))


def test_a_value_in_a_message_stays_on_one_line() -> None:
    assert shown("a\nb") == r"'a\nb'"
