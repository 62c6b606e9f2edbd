"""StatefulSetSpecEditor: each method sets its field, and None unsets it."""

from collections.abc import Callable

import pytest
from kubernetes.client import (
    V1LabelSelector,
    V1PodTemplateSpec,
    V1StatefulSetPersistentVolumeClaimRetentionPolicy,
    V1StatefulSetSpec,
    V1StatefulSetUpdateStrategy,
)
from pydantic import ValidationError

from ocf.editors import StatefulSetSpecEditor as Editor
from ocf.errors import ConfigError
from ocf.objects import write_model

STRATEGY = V1StatefulSetUpdateStrategy(type="OnDelete")
RETENTION = V1StatefulSetPersistentVolumeClaimRetentionPolicy(when_deleted="Delete")


@pytest.mark.parametrize(
    ("setter", "field", "value", "written"),
    [
        pytest.param(Editor.set_replicas, "replicas", 0, 0, id="replicas, 0 is a value"),
        pytest.param(Editor.set_service_name, "serviceName", "db", "db", id="service"),
        pytest.param(Editor.set_pod_management_policy, "podManagementPolicy", "Parallel", "Parallel", id="management"),
        pytest.param(Editor.set_revision_history_limit, "revisionHistoryLimit", 2, 2, id="history"),
        pytest.param(Editor.set_min_ready_seconds, "minReadySeconds", 5, 5, id="seconds"),
        pytest.param(Editor.set_update_strategy, "updateStrategy", STRATEGY, {"type": "OnDelete"}, id="strategy"),
        pytest.param(
            Editor.set_persistent_volume_claim_retention_policy,
            "persistentVolumeClaimRetentionPolicy",
            RETENTION,
            {"whenDeleted": "Delete"},
            id="retention",
        ),
    ],
)
def test_sets_its_field_none_unsets_it_and_another_type_is_rejected(
    setter: Callable[[Editor, object], None], field: str, value: object, written: object
) -> None:
    editor = Editor(V1StatefulSetSpec(selector=V1LabelSelector(), template=V1PodTemplateSpec()))
    before = write_model(editor.raw)
    setter(editor, value)
    assert write_model(editor.raw) == {**before, field: written}
    with pytest.raises((ValidationError, ConfigError)):
        setter(editor, 1.5)
    setter(editor, None)
    assert write_model(editor.raw) == before


def test_a_strategy_is_stored_as_a_copy() -> None:
    editor = Editor(V1StatefulSetSpec(selector=V1LabelSelector(), template=V1PodTemplateSpec()))
    editor.set_update_strategy(STRATEGY)
    assert editor.raw.update_strategy is not STRATEGY
