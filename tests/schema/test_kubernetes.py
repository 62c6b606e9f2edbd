"""The table of Kubernetes releases."""

from pathlib import Path

import pytest

from ocf.errors import ConfigError
from ocf.schema.kubernetes import KUBERNETES_VERSION, NEWEST, OLDEST, RELEASES, FeatureGates
from ocf.testing.envtest.versions import PINNED

SCRIPTS = Path(__file__).parents[2] / "scripts" / "oracles" / "hpa"
# What each release added; the fields of older ones are off, those of newer ones on.
ADDED = {
    "1.33": {"tolerance_known", "tolerance_by_bounds", "described_object_kept"},
    "1.34": {
        "pod_level_resources",
        "references_checked",
        "binary_memory",
        "negative_totals_overflow",
        "conflicts_retried",
    },
    "1.35": {"configurable_tolerance", "named_container_required"},
    "1.36": {"remembered_zero"},
    "1.37": {"scale_to_zero", "observed_generation", "rules_declared", "scale_metadata_ignored", "causes_kept"},
}


@pytest.mark.parametrize("version", [f"1.{minor}" for minor in range(30, 38)])
@pytest.mark.parametrize("form", ["{}", "v{}.3", "{}.1+k3s1"])
def test_each_release_has_its_rules(version: str, form: str) -> None:
    found = FeatureGates.for_release(form.format(version))
    expected = {name: release <= version for release, names in ADDED.items() for name in names}

    assert found._asdict() == expected


def test_the_default_is_the_pinned_release() -> None:
    assert FeatureGates() == FeatureGates.for_release(KUBERNETES_VERSION)


def test_oldest_and_newest_are_the_ends_of_the_table() -> None:
    assert (OLDEST, NEWEST) == ("1.30", "1.37")
    assert list(RELEASES) == [f"1.{minor}" for minor in range(30, 38)]


@pytest.mark.parametrize("version", ["", "1", "x.y", "1.36x", "latest"])
def test_a_text_that_is_not_a_version_is_rejected(version: str) -> None:
    with pytest.raises(ConfigError, match=r"is not a version of Kubernetes: write for example 1\.36"):
        FeatureGates.for_release(version)


@pytest.mark.parametrize("version", ["1.29", "1.38", "2.36"])
def test_an_unknown_release_is_rejected(version: str) -> None:
    with pytest.raises(ConfigError, match=r"is not known here, must be 1\.30 to 1\.37"):
        FeatureGates.for_release(version)


def test_envtest_runs_the_pinned_release() -> None:
    assert PINNED.kubernetes == KUBERNETES_VERSION


def test_the_scripts_read_the_version_from_the_table() -> None:
    """They take it with `sed` from a line of this exact form."""
    line = f'KUBERNETES_VERSION: Final = "{KUBERNETES_VERSION}"'
    source = (SCRIPTS.parents[2] / "ocf" / "schema" / "kubernetes.py").read_text()

    assert line in source.splitlines()
    assert "^KUBERNETES_VERSION: Final = " in (SCRIPTS / "module.sh").read_text()
