"""CronJobSpecEditor: each method sets its field, and None unsets it, except the schedule."""

from collections.abc import Callable

import pytest
from kubernetes.client import V1CronJobSpec, V1JobTemplateSpec
from pydantic import ValidationError

from ocf.editors import CronJobSpecEditor as Editor
from ocf.errors import ConfigError
from ocf.objects import write_model


@pytest.fixture
def editor() -> Editor:
    return Editor(V1CronJobSpec(schedule="0 2 * * *", job_template=V1JobTemplateSpec()))


@pytest.mark.parametrize(
    ("setter", "field", "value"),
    [
        pytest.param(Editor.set_concurrency_policy, "concurrencyPolicy", "Forbid", id="concurrency"),
        pytest.param(Editor.set_starting_deadline_seconds, "startingDeadlineSeconds", 0, id="deadline, 0 is a value"),
        pytest.param(Editor.set_successful_jobs_history_limit, "successfulJobsHistoryLimit", 0, id="successful"),
        pytest.param(Editor.set_failed_jobs_history_limit, "failedJobsHistoryLimit", 2, id="failed"),
        pytest.param(Editor.set_time_zone, "timeZone", "Europe/Berlin", id="time zone"),
    ],
)
def test_sets_its_field_none_unsets_it_and_another_type_is_rejected(
    editor: Editor, setter: Callable[[Editor, object], None], field: str, value: object
) -> None:
    before = write_model(editor.raw)
    setter(editor, value)
    assert write_model(editor.raw) == {**before, field: value}
    with pytest.raises(ValidationError):
        setter(editor, 1.5)
    setter(editor, None)
    assert write_model(editor.raw) == before


def test_sets_the_schedule_which_cannot_be_unset(editor: Editor) -> None:
    editor.set_schedule("@hourly")
    assert editor.raw.schedule == "@hourly"
    with pytest.raises(ConfigError, match="schedule: must be a text"):
        editor.set_schedule(None)  # type: ignore[arg-type]  # the mistake tested
