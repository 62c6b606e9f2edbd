"""Editor of the spec of a Job, of a Job itself or of the Jobs of a CronJob."""

from __future__ import annotations

from ocf.editors.editor import Editor
from ocf.lazy_types.kubernetes import V1JobSpec

__all__ = ["JobSpecEditor"]


class JobSpecEditor(Editor[V1JobSpec]):
    """Edits the spec of a Job; its pod template has separate editors.

    `suspend` belongs to the suspension of the component and has no method.

    Source: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/job-v1/.

    Args:
        raw: The live spec.

    Example:
        >>> from kubernetes.client import V1JobSpec, V1PodTemplateSpec
        >>> spec = V1JobSpec(template=V1PodTemplateSpec())
        >>> JobSpecEditor(spec).set_backoff_limit(3)
        >>> spec.backoff_limit
        3
    """

    __slots__ = ()

    def set_completions(self, completions: int | None) -> None:
        """Set how many pods must succeed; it cannot be changed after creation, except together with `parallelism`.

        Args:
            completions: Number of pods. None unsets the field: the success of any pod then completes the Job, or the
                API server uses 1 if `parallelism` is unset as well.
        """
        self._raw.completions = completions

    def set_parallelism(self, parallelism: int | None) -> None:
        """Set how many pods may run at the same time.

        Args:
            parallelism: Number of pods. None unsets the field; the API server then uses 1.
        """
        self._raw.parallelism = parallelism

    def set_backoff_limit(self, limit: int | None) -> None:
        """Set how many failures are retried before the Job fails.

        Args:
            limit: Number of retries. None unsets the field; the API server then uses 6.
        """
        self._raw.backoff_limit = limit

    def set_active_deadline_seconds(self, seconds: int | None) -> None:
        """Set how long the Job may be active before its pods are stopped and it fails.

        Args:
            seconds: Time in seconds. None unsets the field, which sets no limit.
        """
        self._raw.active_deadline_seconds = seconds

    def set_ttl_seconds_after_finished(self, seconds: int | None) -> None:
        """Set when a finished Job is deleted.

        Args:
            seconds: Time in seconds. None unsets the field; the Job is then kept. For the Jobs of a CronJob only: a
                Job of a component takes it with `run_once`, and would run again otherwise.
        """
        self._raw.ttl_seconds_after_finished = seconds

    def set_completion_mode(self, mode: str | None) -> None:
        """Set how completions are counted; it cannot be changed after creation.

        Args:
            mode: `NonIndexed` or `Indexed`. None unsets the field; the API server then uses `NonIndexed`.
        """
        self._raw.completion_mode = mode
