"""Editor of the spec of a CronJob."""

from __future__ import annotations

from ocf.editors.editor import Editor
from ocf.editors.model_values import require
from ocf.lazy_types.kubernetes import V1CronJobSpec

__all__ = ["CronJobSpecEditor"]


class CronJobSpecEditor(Editor[V1CronJobSpec]):
    """Edits the spec of a CronJob; the spec of its Jobs has a separate editor.

    `suspend` belongs to the suspension of the component and has no method.

    Source: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/cron-job-v1/.

    Args:
        raw: The live spec.

    Example:
        >>> from kubernetes.client import V1CronJobSpec, V1JobTemplateSpec
        >>> spec = V1CronJobSpec(schedule="0 2 * * *", job_template=V1JobTemplateSpec())
        >>> CronJobSpecEditor(spec).set_schedule("0 */6 * * *")
        >>> spec.schedule
        '0 */6 * * *'
    """

    __slots__ = ()

    def set_schedule(self, schedule: str) -> None:
        """Set when Jobs are created.

        Args:
            schedule: Schedule in the format of cron, `0 2 * * *`.

        Raises:
            ConfigError: If the schedule is not a string.
        """
        self._raw.schedule = require("schedule", schedule, str)

    def set_concurrency_policy(self, policy: str | None) -> None:
        """Set what happens if the previous Job still runs at the next schedule.

        Args:
            policy: `Allow`, `Forbid` or `Replace`. None unsets the field; the API server then uses `Allow`.
        """
        self._raw.concurrency_policy = policy

    def set_starting_deadline_seconds(self, seconds: int | None) -> None:
        """Set how late a Job may be created if its schedule was missed.

        Args:
            seconds: Time in seconds. None unsets the field, which sets no limit.
        """
        self._raw.starting_deadline_seconds = seconds

    def set_successful_jobs_history_limit(self, limit: int | None) -> None:
        """Set how many successful Jobs are kept.

        Args:
            limit: Number of Jobs. None unsets the field; the API server then uses 3.
        """
        self._raw.successful_jobs_history_limit = limit

    def set_failed_jobs_history_limit(self, limit: int | None) -> None:
        """Set how many failed Jobs are kept.

        Args:
            limit: Number of Jobs. None unsets the field; the API server then uses 1.
        """
        self._raw.failed_jobs_history_limit = limit

    def set_time_zone(self, time_zone: str | None) -> None:
        """Set the time zone of the schedule.

        Args:
            time_zone: Name in the time zone database, `Europe/Berlin`. None unsets the field; the schedule then follows
                the time zone of kube-controller-manager.
        """
        self._raw.time_zone = time_zone
