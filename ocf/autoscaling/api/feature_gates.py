"""Which features of autoscaling/v2 a cluster has.

What the server accepts depends on a few switches, whose defaults moved from release to release, and on rules that came
with one. Off-line there is no
server to ask, so the release is named instead, and a cluster with switches of its own is described one by one.
"""

import re
from dataclasses import dataclass
from typing import Final

from ocf.errors import ConfigError

__all__ = ["FeatureGates"]

_VERSION: Final = re.compile(r"v?(\d+)\.(\d+)(?:[.+-].*)?")
_MAJOR: Final = 1
_OLDEST: Final = 30
_NEWEST: Final = 37
_TOLERANCE_KNOWN: Final = 33
_REFERENCES_CHECKED: Final = 34
_TOLERANCE_ON: Final = 35
_SCALE_TO_ZERO_ON: Final = 37


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureGates:
    """The feature gates and rules that decide what an HPA may say; by default those of Kubernetes 1.36.

    Source: https://kubernetes.io/docs/reference/command-line-tools-reference/feature-gates/.

    Args:
        scale_to_zero: `HPAScaleToZero`: `minReplicas` may be 0.
        configurable_tolerance: `HPAConfigurableTolerance`: a `tolerance` is kept; without the gate the server drops
            it in silence, unless the stored object has one.
        tolerance_known: Whether the server has the field `tolerance` at all.
        references_checked: Whether the server looks at the `apiVersion` of the target and of described objects.

    Example:
        >>> FeatureGates.of("1.34").configurable_tolerance, FeatureGates.of("v1.36.3").configurable_tolerance
        (False, True)
    """

    scale_to_zero: bool = False
    configurable_tolerance: bool = True
    tolerance_known: bool = True
    references_checked: bool = True

    @classmethod
    def of(cls, version: str) -> "FeatureGates":
        """Return the defaults of a release.

        Args:
            version: Version of Kubernetes, `1.36` or `v1.36.3`.

        Returns:
            What that release has, if nobody changed it.

        Raises:
            ConfigError: If it is no version, or one whose rules are not known here.
        """
        match = _VERSION.fullmatch(version)
        if match is None:
            raise ConfigError(f"{version!r} is no version of Kubernetes: write for example 1.36")
        major, minor = int(match[1]), int(match[2])
        if major != _MAJOR or not _OLDEST <= minor <= _NEWEST:
            raise ConfigError(
                f"Kubernetes {version} is not known here, must be {_MAJOR}.{_OLDEST} to {_MAJOR}.{_NEWEST}"
            )
        return cls(
            scale_to_zero=minor >= _SCALE_TO_ZERO_ON,
            configurable_tolerance=minor >= _TOLERANCE_ON,
            tolerance_known=minor >= _TOLERANCE_KNOWN,
            references_checked=minor >= _REFERENCES_CHECKED,
        )
