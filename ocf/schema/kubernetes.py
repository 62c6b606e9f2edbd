"""Releases of Kubernetes: which are known here, and what each of them has.

One row per minor release. Everything that depends on a release takes it from this table: validation, the algorithm of
the HPA controller, lint, the programs of envtest, and the scripts that build from Kubernetes' own source.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from ocf.errors import ConfigError

__all__ = ["KUBERNETES_VERSION", "NEWEST", "OLDEST", "RELEASES", "FeatureGates"]

# Scripts read this line as text: the version stays a literal.
KUBERNETES_VERSION: Final = "1.36.3"
"""The version that the recorded answers, the generated tables and the texts of the API server are from."""

_VERSION: Final = r"v?(\d+\.\d+)(?:[.+-].*)?"


class FeatureGates(NamedTuple):
    """The feature gates and rules of a release that matter to an HPA; by default those of Kubernetes 1.36.

    Source: https://kubernetes.io/docs/reference/command-line-tools-reference/feature-gates/.

    Args:
        scale_to_zero: `HPAScaleToZero`: `minReplicas` may be 0, and the controller scales a workload up again that it
            scaled to zero.
        configurable_tolerance: `HPAConfigurableTolerance`: `tolerance` of the scaling rules is used. Without the gate
            the API server drops the field silently, unless the stored object has it.
        pod_level_resources: `PodLevelResources`: the requests of a whole pod replace the sum of its containers.
        tolerance_known: Whether the API server has the field `tolerance`, from 1.33.
        references_checked: Whether the API server validates the `apiVersion` of the target and of described objects,
            from 1.34.
        remembered_zero: Whether the condition `ScaledToZero` records that the controller scaled to zero, from 1.36.
            Older controllers scale up from zero whenever `minReplicas` is 0.
        observed_generation: `HPAGeneration`: the status has `observedGeneration`, from 1.37.
        tolerance_by_bounds: Whether a ratio is compared with both ends of the tolerance, from 1.33. Older controllers
            compare its distance from 1, which doubles round in another way.
        described_object_kept: Whether the status of an Object metric with an average names the object, from 1.33.
        binary_memory: Whether the status has amounts of memory with binary suffixes such as Mi, from 1.34.
        negative_totals_overflow: Whether a negative sum of an External metric with an average counts as one that is too
            large, from 1.34.
        conflicts_retried: Whether the Scale is written again after a conflict, from 1.34.
        named_container_required: Whether a ContainerResource metric fails if a pod does not have the container, from
            1.35. To older controllers such a pod requests 0.
        rules_declared: Whether errors of rules that the type declares (`minReplicas`, `maxReplicas`) are the last ones,
            and each error is reported once, from 1.37.
        scale_metadata_ignored: Whether the metadata of a Scale is not validated, from 1.37.
        causes_kept: Whether errors keep their cause, from 1.37: an unknown type of metric is an error of the spec, and
            two texts differ.

    Example:
        >>> FeatureGates.for_release("1.34").configurable_tolerance
        False
        >>> FeatureGates.for_release("v1.36.3").configurable_tolerance
        True
    """

    scale_to_zero: bool = False
    configurable_tolerance: bool = True
    pod_level_resources: bool = True
    tolerance_known: bool = True
    references_checked: bool = True
    remembered_zero: bool = True
    observed_generation: bool = False
    tolerance_by_bounds: bool = True
    described_object_kept: bool = True
    binary_memory: bool = True
    negative_totals_overflow: bool = True
    conflicts_retried: bool = True
    named_container_required: bool = True
    rules_declared: bool = False
    scale_metadata_ignored: bool = False
    causes_kept: bool = False

    @classmethod
    def for_release(cls, version: str) -> "FeatureGates":
        """Return the defaults of a release.

        Args:
            version: Version of Kubernetes, `1.36` or `v1.36.3`.

        Returns:
            The feature gates as the release sets them.

        Raises:
            ConfigError: If the text is not a version, or the release is not known here.
        """
        match = re.fullmatch(_VERSION, version)
        if match is None:
            raise ConfigError(f"{version!r} is not a version of Kubernetes: write for example 1.36")
        gates = RELEASES.get(match[1])
        if gates is None:
            raise ConfigError(f"Kubernetes {version} is not known here, must be {OLDEST} to {NEWEST}")
        return gates


# Each release differs from the next newer one by what that one added.
_1_36: Final = FeatureGates()
_1_35: Final = _1_36._replace(remembered_zero=False)
_1_34: Final = _1_35._replace(configurable_tolerance=False, named_container_required=False)
_1_33: Final = _1_34._replace(
    pod_level_resources=False,
    references_checked=False,
    binary_memory=False,
    negative_totals_overflow=False,
    conflicts_retried=False,
)
_1_32: Final = _1_33._replace(tolerance_known=False, tolerance_by_bounds=False, described_object_kept=False)

RELEASES: Final[Mapping[str, FeatureGates]] = MappingProxyType(
    {
        "1.30": _1_32,
        "1.31": _1_32,
        "1.32": _1_32,
        "1.33": _1_33,
        "1.34": _1_34,
        "1.35": _1_35,
        "1.36": _1_36,
        "1.37": FeatureGates(
            scale_to_zero=True,
            observed_generation=True,
            rules_declared=True,
            scale_metadata_ignored=True,
            causes_kept=True,
        ),
    }
)
"""The feature gates by minor release, oldest first."""

OLDEST: Final = next(iter(RELEASES))
"""The oldest minor release that is known here."""

NEWEST: Final = tuple(RELEASES)[-1]
"""The newest minor release that is known here."""
