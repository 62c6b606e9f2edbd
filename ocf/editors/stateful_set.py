"""Editor of the spec of a StatefulSet."""

from __future__ import annotations

from typing import Final

from ocf.editors.keyed_lists import KeyedList
from ocf.editors.model_values import own_or_none
from ocf.editors.pod_sets import ReplicasEditor, RevisionsEditor
from ocf.lazy_types.kubernetes import (
    V1PersistentVolumeClaim,
    V1StatefulSetPersistentVolumeClaimRetentionPolicy,
    V1StatefulSetSpec,
    V1StatefulSetUpdateStrategy,
)

__all__ = ["VOLUME_CLAIM_TEMPLATES", "StatefulSetSpecEditor"]

VOLUME_CLAIM_TEMPLATES: Final[KeyedList[V1StatefulSetSpec, V1PersistentVolumeClaim]] = KeyedList(
    "volume_claim_templates", key=lambda claim: claim.metadata.name if claim.metadata else None
)
"""The volume claim templates of a StatefulSet, by name."""


class StatefulSetSpecEditor(ReplicasEditor[V1StatefulSetSpec], RevisionsEditor[V1StatefulSetSpec]):
    """Edits the spec of a StatefulSet; its pod template and its volume claim templates have separate editors.

    Source: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/stateful-set-v1/.

    Args:
        raw: The live spec.

    Example:
        >>> from kubernetes.client import V1LabelSelector, V1PodTemplateSpec, V1StatefulSetSpec
        >>> spec = V1StatefulSetSpec(selector=V1LabelSelector(), template=V1PodTemplateSpec())
        >>> StatefulSetSpecEditor(spec).set_pod_management_policy("Parallel")
        >>> spec.pod_management_policy
        'Parallel'
    """

    __slots__ = ()

    def set_service_name(self, name: str | None) -> None:
        """Set the Service that provides the DNS names of the pods; it cannot be changed after creation.

        Args:
            name: Name of a headless Service. None unsets the field.
        """
        self._raw.service_name = name

    def set_pod_management_policy(self, policy: str | None) -> None:
        """Set whether pods are started one after the other; it cannot be changed after creation.

        Args:
            policy: `OrderedReady` or `Parallel`. None unsets the field; the API server then uses `OrderedReady`.
        """
        self._raw.pod_management_policy = policy

    def set_update_strategy(self, strategy: V1StatefulSetUpdateStrategy | None) -> None:
        """Set how pods are replaced when the template changes.

        Args:
            strategy: Replaces the whole strategy; a copy is stored. None unsets the field; the API server then uses
                `RollingUpdate`.

        Raises:
            ConfigError: If the argument is not an update strategy of a StatefulSet.
        """
        self._raw.update_strategy = own_or_none(self._raw, "update_strategy", strategy)

    def set_persistent_volume_claim_retention_policy(
        self, policy: V1StatefulSetPersistentVolumeClaimRetentionPolicy | None
    ) -> None:
        """Set what happens to the claims when pods are removed.

        Args:
            policy: Replaces the whole policy; a copy is stored. None unsets the field, and the claims are kept.

        Raises:
            ConfigError: If the argument is not a retention policy.
        """
        field = "persistent_volume_claim_retention_policy"
        self._raw.persistent_volume_claim_retention_policy = own_or_none(self._raw, field, policy)
