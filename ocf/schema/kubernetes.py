"""Releases of Kubernetes: which are known here, and what each of them has.

One row per minor release. Everything that depends on a release takes it from this table: validation, the algorithm of
the HPA controller, lint, the programs of envtest, and the scripts that build from Kubernetes' own source.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from ocf.errors import ConfigError

__all__ = ["KUBERNETES_VERSION", "NEWEST", "OLDEST", "RELEASES", "FeatureGates"]

# Scripts read this line as text: the version stays a literal.
KUBERNETES_VERSION: Final = "1.36.3"
"""The version that the recorded answers, the generated tables and the texts of the API server are from."""

_VERSION: Final = re.compile(r"v?(\d+\.\d+)(?:[.+-].*)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureGates:
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
        match = _VERSION.fullmatch(version)
        if match is None:
            raise ConfigError(f"{version!r} is not a version of Kubernetes: write for example 1.36")
        gates = RELEASES.get(match[1])
        if gates is None:
            raise ConfigError(f"Kubernetes {version} is not known here, must be {OLDEST} to {NEWEST}")
        return gates


_BEFORE_TOLERANCE: Final = FeatureGates(
    configurable_tolerance=False,
    pod_level_resources=False,
    tolerance_known=False,
    references_checked=False,
    remembered_zero=False,
)

RELEASES: Final[Mapping[str, FeatureGates]] = MappingProxyType(
    {
        "1.30": _BEFORE_TOLERANCE,
        "1.31": _BEFORE_TOLERANCE,
        "1.32": _BEFORE_TOLERANCE,
        "1.33": FeatureGates(
            configurable_tolerance=False, pod_level_resources=False, references_checked=False, remembered_zero=False
        ),
        "1.34": FeatureGates(configurable_tolerance=False, remembered_zero=False),
        "1.35": FeatureGates(remembered_zero=False),
        "1.36": FeatureGates(),
        "1.37": FeatureGates(scale_to_zero=True, observed_generation=True),
    }
)
"""The feature gates by minor release, oldest first."""

OLDEST: Final = next(iter(RELEASES))
"""The oldest minor release that is known here."""

NEWEST: Final = tuple(RELEASES)[-1]
"""The newest minor release that is known here."""
