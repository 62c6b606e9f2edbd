"""What releases of Kubernetes differ in for an API server: their kinds and fields, and their feature gates.

`scripts/generate/releases.py` generates the table from Kubernetes' own source. Which fields an API server drops while a
gate is off is written here, from the strategies in pkg/registry and from pkg/api of Kubernetes 1.36.
"""

import gzip
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any, Final

from ocf.errors import ConfigError
from ocf.objects.suggestions import nearest
from ocf.schema.kubernetes import KUBERNETES_VERSION, RELEASES, FeatureGates

__all__ = ["CURRENT", "GATED_FIELDS", "Release", "gate_of", "read_gates"]

_VERSION: Final = re.compile(r"v?(1\.(\d+)(?:\.\d+)?)(?:[+-].*)?")
_FIRST: Final = 30
"""The first minor release of the table."""
_CURRENT: Final = int(KUBERNETES_VERSION.split(".")[1])
_NONE: Final[Mapping[str, bool]] = MappingProxyType({})
_ALL: Final = {"AllAlpha": "a", "AllBeta": "b"}
"""Gates that stand for all of a stage."""
_LOCKED: Final = "!"
_ON: Final = "+"
_RESIZED_SINCE: Final = 32
_NEEDS_SINCE: Final = 35
"""The first minor release that refuses a gate without those that it needs."""

GATED_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "ClusterTrustBundleProjection": ("core.v1.VolumeProjection.clusterTrustBundle",),
    "ContainerRestartRules": (
        "core.v1.Container.restartPolicy",
        "core.v1.Container.restartPolicyRules",
        "core.v1.EphemeralContainer.restartPolicy",
        "core.v1.EphemeralContainer.restartPolicyRules",
    ),
    "ContainerStopSignals": ("core.v1.Lifecycle.stopSignal",),
    "CoordinatedLeaderElection": ("coordination.v1.LeaseSpec.preferredHolder", "coordination.v1.LeaseSpec.strategy"),
    "CrossNamespaceVolumeDataSource": ("core.v1.PersistentVolumeClaimSpec.dataSourceRef",),
    "CSIServiceAccountTokenSecrets": ("storage.v1.CSIDriverSpec.serviceAccountTokenInSecrets",),
    "DeploymentReplicaSetTerminatingReplicas": (
        "apps.v1.DeploymentStatus.terminatingReplicas",
        "apps.v1.ReplicaSetStatus.terminatingReplicas",
    ),
    "DRAExtendedResource": ("core.v1.PodStatus.extendedResourceClaimStatus",),
    "DRANodeAllocatableResources": ("core.v1.PodStatus.nodeAllocatableResourceClaimStatuses",),
    "DynamicResourceAllocation": (
        "core.v1.PodSpec.resourceClaims",
        "core.v1.PodStatus.resourceClaimStatuses",
        "core.v1.ResourceRequirements.claims",
    ),
    "EnvFiles": ("core.v1.EnvVarSource.fileKeyRef",),
    "GenericWorkload": ("core.v1.PodSpec.schedulingGroup",),
    "HostnameOverride": ("core.v1.PodSpec.hostnameOverride",),
    "HPAConfigurableTolerance": ("autoscaling.v2.HPAScalingRules.tolerance",),
    "ImageVolume": ("core.v1.Volume.image",),
    "ImageVolumeWithDigest": ("core.v1.VolumeMountStatus.volumeStatus",),
    "InPlacePodLevelResourcesVerticalScaling": (
        "core.v1.PodStatus.allocatedResources",
        "core.v1.PodStatus.resources",
    ),
    "InPlacePodVerticalScaling": (
        "core.v1.Container.resizePolicy",
        "core.v1.ContainerStatus.allocatedResources",
        "core.v1.ContainerStatus.resources",
        "core.v1.EphemeralContainer.resizePolicy",
    ),
    "JobBackoffLimitPerIndex": ("batch.v1.JobSpec.backoffLimitPerIndex", "batch.v1.JobSpec.maxFailedIndexes"),
    "JobManagedBy": ("batch.v1.JobSpec.managedBy",),
    "JobPodReplacementPolicy": ("batch.v1.JobSpec.podReplacementPolicy",),
    "JobSuccessPolicy": ("batch.v1.JobSpec.successPolicy",),
    "MatchLabelKeysInPodAffinity": (
        "core.v1.PodAffinityTerm.matchLabelKeys",
        "core.v1.PodAffinityTerm.mismatchLabelKeys",
    ),
    "MatchLabelKeysInPodTopologySpread": ("core.v1.TopologySpreadConstraint.matchLabelKeys",),
    "MaxUnavailableStatefulSet": ("apps.v1.RollingUpdateStatefulSetStrategy.maxUnavailable",),
    "MutableCSINodeAllocatableCount": (
        "storage.v1.CSIDriverSpec.nodeAllocatableUpdatePeriodSeconds",
        "storage.v1.VolumeError.errorCode",
    ),
    "NodeInclusionPolicyInPodTopologySpread": (
        "core.v1.TopologySpreadConstraint.nodeAffinityPolicy",
        "core.v1.TopologySpreadConstraint.nodeTaintsPolicy",
    ),
    "NodeDeclaredFeatures": ("core.v1.NodeStatus.declaredFeatures",),
    "PodCertificateRequest": ("core.v1.VolumeProjection.podCertificate",),
    "PodLevelResources": ("core.v1.PodSpec.resources",),
    "PodLifecycleSleepAction": ("core.v1.LifecycleHandler.sleep",),
    "PodObservedGenerationTracking": (
        "core.v1.PodCondition.observedGeneration",
        "core.v1.PodStatus.observedGeneration",
    ),
    "PreferSameTrafficDistribution": ("discovery.v1.EndpointHints.forNodes",),
    "ProcMountType": ("core.v1.SecurityContext.procMount",),
    "RecoverVolumeExpansionFailure": (
        "core.v1.PersistentVolumeClaimStatus.allocatedResourceStatuses",
        "core.v1.PersistentVolumeClaimStatus.allocatedResources",
    ),
    "RecursiveReadOnlyMounts": (
        "core.v1.ContainerStatus.volumeMounts",
        "core.v1.VolumeMount.recursiveReadOnly",
    ),
    "ResourceHealthStatus": ("core.v1.ContainerStatus.allocatedResourcesStatus",),
    "ResourceHealthStatusMessage": ("core.v1.ResourceHealth.message",),
    "SELinuxChangePolicy": ("core.v1.PodSecurityContext.seLinuxChangePolicy",),
    "SELinuxMountReadWriteOncePod": ("storage.v1.CSIDriverSpec.seLinuxMount",),
    "SupplementalGroupsPolicy": (
        "core.v1.ContainerStatus.user",
        "core.v1.NodeStatus.features",
        "core.v1.PodSecurityContext.supplementalGroupsPolicy",
    ),
    "UserNamespacesSupport": ("core.v1.PodSpec.hostUsers",),
    "VolumeAttributesClass": (
        "core.v1.PersistentVolumeClaimSpec.volumeAttributesClassName",
        "core.v1.PersistentVolumeClaimStatus.currentVolumeAttributesClassName",
        "core.v1.PersistentVolumeClaimStatus.modifyVolumeStatus",
        "core.v1.PersistentVolumeSpec.volumeAttributesClassName",
    ),
    "VolumeLimitScaling": ("storage.v1.CSIDriverSpec.preventPodSchedulingIfMissing",),
}
"""The fields that an API server drops while a gate is off, unless the stored object has them.

Of some only certain values, as `ocf_server.registry.disabled_fields` has it.
"""

_OTHER_EFFECTS: Final = ("HPAScaleToZero", "ShardedListAndWatch")
"""Gates that have another effect here."""


@cache
def _document() -> dict[str, Any]:
    packed = resources.files("ocf.schema").joinpath("releases.json.gz").read_bytes()
    document: dict[str, Any] = json.loads(gzip.decompress(packed))
    return document


@cache
def _gates() -> Mapping[tuple[str, str], str]:
    fields = ((gate, *field.rpartition(".")) for gate, fields in GATED_FIELDS.items() for field in fields)
    return {(struct, name): gate for gate, struct, _, name in fields}


def gate_of(struct: str, field: str) -> str:
    """Return the gate without which an API server drops a field of a struct; empty for none."""
    return _gates().get((struct, field), "")


def _order(release: str) -> int:
    return int(release.partition(".")[2])


def _at(history: Mapping[str, str], minor: int) -> str:
    """Return the state of a gate in a release; empty if it does not exist there."""
    states = [state for release, state in history.items() if _order(release) <= minor]
    return states[-1] if states else ""


@cache
def _states(minor: int) -> Mapping[str, str]:
    found = {name: _at(history, minor) for name, history in _document()["gates"].items()}
    return {name: state for name, state in found.items() if state}


@dataclass(frozen=True, slots=True)
class Release:
    """A release of Kubernetes with feature gates, as an API server of it behaves.

    Args:
        version: The release, `1.36` or `1.36.3`.
        gates: The gates that do not have the value that the release gives them.
    """

    version: str = KUBERNETES_VERSION
    gates: frozenset[tuple[str, bool]] = frozenset()

    @classmethod
    def of(cls, version: str = "", feature_gates: Mapping[str, bool] = _NONE) -> "Release":
        """Return a release with some gates set.

        Args:
            version: The release; empty for the one whose tables the embedded API server has.
            feature_gates: Values by the name of the gate; `AllAlpha` and `AllBeta` stand for those that are not named.

        Raises:
            ConfigError: If the release or a gate is not known, a gate cannot be changed in the release, or is on while
                one that it needs is off.

        Example:
            >>> Release.of("1.34").enabled("HPAConfigurableTolerance")
            False
            >>> Release.of("1.34", {"HPAConfigurableTolerance": True}).enabled("HPAConfigurableTolerance")
            True
        """
        found = _VERSION.fullmatch(version or KUBERNETES_VERSION)
        if found is None:
            raise ConfigError(f"{version!r} is not a version of Kubernetes: write for example 1.{_CURRENT}")
        minor = int(found[2])
        if not _FIRST <= minor <= _CURRENT:
            known = f"must be 1.{_FIRST} to 1.{_CURRENT}"
            raise ConfigError(f"Kubernetes {version} is not known to the embedded API server, {known}")
        states = _states(minor) if feature_gates else {}
        given = {name: value for name, value in feature_gates.items() if _checked(name, states, minor, value=value)}
        for group, stage in _ALL.items():
            if group in feature_gates:
                of_stage = (name for name, state in states.items() if state[0] == stage and _LOCKED not in state)
                given |= {name: feature_gates[group] for name in of_stage if name not in feature_gates}
        changed = frozenset((name, value) for name, value in given.items() if value is not (_ON in states[name]))
        release = cls(KUBERNETES_VERSION if found[1] == f"1.{_CURRENT}" else found[1], changed)
        if changed and minor >= _NEEDS_SINCE:
            _check_needs(release)
        return release

    @property
    def minor(self) -> int:
        """The minor release, 36 for 1.36.3."""
        return _order(".".join(self.version.split(".")[:2]))

    @property
    def git_version(self) -> str:
        """The version as programs of the release name it, `v1.33.0` for 1.33."""
        return f"v{self.version}" if self.version.count(".") > 1 else f"v{self.version}.0"

    @property
    def is_current(self) -> bool:
        """Whether it is the release whose tables the embedded API server has."""
        return self.minor == _CURRENT

    def enabled(self, gate: str) -> bool:
        """Return whether a gate is on; one that the release does not have is off."""
        for value in (True, False):
            if (gate, value) in self.gates:
                return value
        return _ON in _states(self.minor).get(gate, "")

    def closed_gates(self) -> frozenset[str]:
        """Return the gates that are off, of those that fields depend on."""
        return _closed(self)

    def serves(self, group: str, version: str, kind: str) -> bool:
        """Return whether the release serves a built-in kind."""
        return self._has(_document()["kinds"].get(f"{group}/{version}/{kind}"))

    def serves_part(self, group: str, kind: str, part: str) -> bool:
        """Return whether the release serves a subresource of a built-in kind."""
        if (group, kind, part) != ("", "Pod", "resize"):
            return True
        return self.minor >= _RESIZED_SINCE and self.enabled("InPlacePodVerticalScaling")

    def has_field(self, struct: str, field: str) -> bool:
        """Return whether a struct has a field, of those that the table of built-in kinds has."""
        return self._has(_document()["fields"].get(struct, {}).get(field))

    def _has(self, since: str | None) -> bool:
        return since is None or _order(since) <= self.minor

    def autoscaling(self) -> FeatureGates:
        """Return what matters to autoscalers."""
        return RELEASES[f"1.{self.minor}"]._replace(
            scale_to_zero=self.enabled("HPAScaleToZero"),
            configurable_tolerance=self.enabled("HPAConfigurableTolerance"),
            pod_level_resources=self.enabled("PodLevelResources"),
        )


CURRENT: Final = Release()
"""The release whose tables the embedded API server has."""

_COMPONENT: Final = "kube"
_BOOLEANS: Final = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


def read_gates(texts: Iterable[str]) -> dict[str, bool]:
    """Return the values of flags such as `--feature-gates`, as kube-apiserver reads them.

    Args:
        texts: Values of the flag, each with any number of gates: `A=true,B=false`. Of several values of a gate the last
            counts. The component `kube:` may stand before each gate, or before none.

    Raises:
        ConfigError: If a part is not `NAME=BOOL`, names another component, or only some parts name the component.

    Example:
        >>> read_gates(["HPAScaleToZero=true", "EnvFiles=F"])
        {'HPAScaleToZero': True, 'EnvFiles': False}
    """
    found: dict[str, bool] = {}
    components: set[str] = set()
    for part in (part for text in texts for part in text.split(",") if part):
        component, colon, gate = part.partition(":")
        component, gate = (component.strip(), gate.strip()) if colon else ("", part.strip())
        components.add(component)
        if component not in ("", _COMPONENT):
            raise ConfigError(f'feature gate "{part}" is of the component "{component}": only {_COMPONENT} is known')
        name, _, value = (word.strip() for word in gate.partition("="))
        if gate and (not name or value not in _BOOLEANS):
            raise ConfigError(f'invalid feature gate "{part}": write NAME=true or NAME=false, several joined by commas')
        if gate:
            found[name] = _BOOLEANS[value]
    if len(components) > 1:
        raise ConfigError(f"feature gates with and without {_COMPONENT}: write it before each gate, or before none")
    return found


@cache
def _closed(release: Release) -> frozenset[str]:
    return frozenset(gate for gate in GATED_FIELDS if not release.enabled(gate))


def _checked(name: str, states: Mapping[str, str], minor: int, *, value: bool) -> bool:
    """Check the value of a gate; return whether it is one gate, and not all of a stage.

    Raises:
        ConfigError: If the release does not have the gate, or it cannot have the value.
    """
    if name in _ALL:
        return False
    state = states.get(name)
    if state is None:
        found = nearest(name, states)
        advice = f"did you mean {found}? The" if found else "the"
        used = ", ".join(sorted(gate for gate in (*GATED_FIELDS, *_OTHER_EFFECTS) if gate in states))
        raise ConfigError(
            f'Kubernetes 1.{minor} has no feature gate "{name}": {advice} gates with an effect on the embedded API '
            f"server are {used}; the other gates of the release are accepted"
        )
    if _LOCKED in state and value is not (_ON in state):
        raise ConfigError(f"feature gate {name} cannot be {str(value).lower()}: it is locked in Kubernetes 1.{minor}")
    return True


def _check_needs(release: Release) -> None:
    """Raise ConfigError if a gate is on while one that it needs is off."""
    for gate, needed in _document()["needs"].items():
        closed = [name for name in needed if not release.enabled(name)]
        if closed and release.enabled(gate):
            names = ", ".join(closed)
            raise ConfigError(f"feature gate {gate} is on and needs {names}: set {gate}=false, or turn on {names}")
