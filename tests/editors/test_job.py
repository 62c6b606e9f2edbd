"""JobSpecEditor: each method sets its field, and None unsets it."""

from collections.abc import Callable

import pytest
from kubernetes.client import V1JobSpec, V1PodTemplateSpec
from pydantic import ValidationError

from ocf.editors import JobSpecEditor as Editor
from ocf.objects import write_model


@pytest.mark.parametrize(
    ("setter", "field", "value"),
    [
        pytest.param(Editor.set_completions, "completions", 3, id="completions"),
        pytest.param(Editor.set_parallelism, "parallelism", 0, id="parallelism, 0 is a value"),
        pytest.param(Editor.set_backoff_limit, "backoffLimit", 0, id="backoff limit, 0 is a value"),
        pytest.param(Editor.set_active_deadline_seconds, "activeDeadlineSeconds", 60, id="deadline"),
        pytest.param(Editor.set_ttl_seconds_after_finished, "ttlSecondsAfterFinished", 0, id="ttl, 0 is a value"),
        pytest.param(Editor.set_completion_mode, "completionMode", "Indexed", id="mode"),
    ],
)
def test_sets_its_field_none_unsets_it_and_another_type_is_rejected(
    setter: Callable[[Editor, object], None], field: str, value: object
) -> None:
    editor = Editor(V1JobSpec(template=V1PodTemplateSpec()))
    before = write_model(editor.raw)
    setter(editor, value)
    assert write_model(editor.raw) == {**before, field: value}
    with pytest.raises(ValidationError):
        setter(editor, 1.5)
    setter(editor, None)
    assert write_model(editor.raw) == before
