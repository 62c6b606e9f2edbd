"""Editors of fields that the specs of kinds with several pods share."""

from __future__ import annotations

from typing import TypeVar

from ocf.editors.editor import Editor
from ocf.lazy_types.kubernetes import V1DaemonSetSpec, V1DeploymentSpec, V1ReplicaSetSpec, V1StatefulSetSpec

__all__ = ["PodSetEditor", "ReplicasEditor", "RevisionsEditor"]

PodSetT = TypeVar("PodSetT", bound="V1DaemonSetSpec | V1DeploymentSpec | V1ReplicaSetSpec | V1StatefulSetSpec")
ReplicasT = TypeVar("ReplicasT", bound="V1DeploymentSpec | V1ReplicaSetSpec | V1StatefulSetSpec")
RevisionsT = TypeVar("RevisionsT", bound="V1DaemonSetSpec | V1DeploymentSpec | V1StatefulSetSpec")


class PodSetEditor(Editor[PodSetT]):
    """Edits the spec of a kind with several equal pods.

    Args:
        raw: The live spec.
    """

    __slots__ = ()

    def set_min_ready_seconds(self, seconds: int | None) -> None:
        """Set how long a pod must be ready before it counts as available.

        Args:
            seconds: Time in seconds. None unsets the field; the API server then uses 0.
        """
        self._raw.min_ready_seconds = seconds


class ReplicasEditor(PodSetEditor[ReplicasT]):
    """Edits the spec of a kind with a number of pods.

    Args:
        raw: The live spec.
    """

    __slots__ = ()

    def set_replicas(self, replicas: int | None) -> None:
        """Set the number of pods.

        Args:
            replicas: Number of pods. None unsets the field, for an autoscaler to set; without an autoscaler the API
                server uses 1.
        """
        self._raw.replicas = replicas


class RevisionsEditor(Editor[RevisionsT]):
    """Edits the spec of a kind that keeps old revisions of its pods.

    Args:
        raw: The live spec.
    """

    __slots__ = ()

    def set_revision_history_limit(self, limit: int | None) -> None:
        """Set how many old revisions are kept for a rollback; those of a Deployment are its ReplicaSets.

        Args:
            limit: Number of revisions. None unsets the field; the API server then uses 10.
        """
        self._raw.revision_history_limit = limit
