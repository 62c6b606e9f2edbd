"""The format of recordings."""

import gzip
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.simulation import InputError
from ocf.simulation.recording import RecordingWriter, reduced
from ocf.simulation.recording.format import is_recording, read_states
from ocf.simulation.recording.objects import identity
from tests.simulation.recording.recordings import NOON, hpa, instants, lines, node, pod, queue, scale, write


def test_every_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    found = [(state.at, dict(state.objects)) for state in read_states(write(tmp_path))]

    assert found == [(at, {identity(each): reduced(each) for each in objects}) for at, objects in instants()]


def test_only_changes_are_written() -> None:
    recorder = RecordingWriter("web", "shop")
    first = json.loads(recorder.line(NOON, [hpa(), scale(2), queue("5", NOON)]))
    second = json.loads(recorder.line(NOON + timedelta(seconds=15), [hpa(), scale(3)]))

    assert len(first["changed"]) == 3
    assert second["changed"] == [scale(3)]
    assert second["removed"] == ["ExternalMetricValue/queue/{}"]
    assert recorder.line(NOON + timedelta(seconds=30), [hpa(), scale(3)]) == ""


def test_secrets_and_managed_fields_are_not_recorded() -> None:
    text = lines([(NOON, [hpa(), pod(0, NOON)])])

    assert "a secret" not in text
    assert "managedFields" not in text
    assert '"requests":{"cpu":"500m","memory":"1Gi"}' in text


def test_a_node_has_its_resources_its_labels_and_whether_it_is_ready() -> None:
    written = json.loads(RecordingWriter("web", "shop").line(NOON, [reduced(node())]))

    assert written["changed"] == [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "n-1", "labels": {"example.com/group": "workers"}},
            "spec": {"taints": [{"key": "spot", "effect": "NoSchedule"}]},
            "status": {
                "capacity": {"cpu": "4", "memory": "16Gi"},
                "allocatable": {"cpu": "3800m", "memory": "15Gi"},
                "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-31T11:00:00Z"}],
            },
        }
    ]


def test_a_heartbeat_of_a_node_is_not_a_change() -> None:
    recorder = RecordingWriter("web", "shop")
    recorder.line(NOON, [reduced(node())])

    assert recorder.line(NOON + timedelta(seconds=15), [reduced(node(heartbeat="2026-01-31T12:00:15Z"))]) == ""


def test_a_recording_of_the_first_format_is_read(tmp_path: Path) -> None:
    text = lines(list(instants()))
    assert '"format":3' in text

    assert len(list(read_states(write(tmp_path, text.replace(',"format":3', ""))))) == 5


OBJECTS = st.dictionaries(st.integers(0, 5), st.integers(0, 3), max_size=6)


@given(st.lists(OBJECTS, min_size=1, max_size=8))
def test_any_sequence_of_states_can_be_recorded(states: list[dict[int, int]]) -> None:
    recorder, objects = RecordingWriter("web", "shop"), dict[str, Any]()
    for step, state in enumerate(states):
        now = [{"kind": "Pod", "metadata": {"name": str(name)}, "spec": value} for name, value in state.items()]
        line = recorder.line(NOON + timedelta(seconds=step), now)
        change = json.loads(line) if line else {}
        for name in change.get("removed", ()):
            del objects[name]
        objects |= {identity(each): each for each in change.get("changed", ())}

        assert objects == {identity(each): each for each in now}


def test_a_recording_that_was_interrupted_is_used_up_to_there(tmp_path: Path) -> None:
    text = lines(list(instants()))

    found = list(read_states(write(tmp_path, text[:-30])))

    assert [state.at for state in found] == [at for at, _ in instants()][:-1]


def test_a_compressed_recording_is_read(tmp_path: Path) -> None:
    path = tmp_path / "web.jsonl.gz"
    path.write_bytes(gzip.compress(lines(list(instants())).encode()))

    assert is_recording(path)
    assert len(list(read_states(path))) == 5


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("", "web.jsonl: the recording is empty", id="empty"),
        pytest.param("{", "web.jsonl:1: invalid JSON", id="not JSON"),
        pytest.param("[]\n", "web.jsonl:1: must be an object, got list", id="list"),
        pytest.param('{"kind": "Scenario"}\n', "web.jsonl:1: kind: must be 'Recording', got 'Scenario'", id="kind"),
        pytest.param('{"kind": "Recording"}\n', "web.jsonl:1: name: required value", id="no name"),
        pytest.param(
            '{"kind": "Recording", "name": "web", "format": 4, "nodeGroups": []}\n',
            "web.jsonl:1: format: must be at most 3, got 4: a newer version of ocf has written it",
            id="newer format",
        ),
        pytest.param(
            '{"kind": "Recording", "name": "web", "format": 0}\n',
            "web.jsonl:1: format: must be greater than or equal to 1, got 0",
            id="format",
        ),
        pytest.param(
            '{"kind": "Recording", "name": "web"}\n{"at": "2026-01-31T12:00:00Z", "chnged": []}\n',
            'web.jsonl:2: chnged: unknown field, did you mean "changed"?',
            id="unknown field",
        ),
        pytest.param(
            '{"kind": "Recording", "name": "web"}\n{"at": "2026-01-31T12:00:00"}\n',
            "web.jsonl:2: at: must have timezone info",
            id="time without an offset",
        ),
        pytest.param(
            '{"kind": "Recording", "name": "web"}\n{"at": "2026-01-31T12:00:00Z"}\n{"at": "2026-01-31T12:00:00Z"}\n',
            "web.jsonl:3: at: must come after the line before, 2026-01-31T12:00:00Z",
            id="order",
        ),
        pytest.param(
            '{"kind": "Recording", "name": "web"}\nx\n{"at": "2026-01-31T12:00:00Z"}\n',
            "web.jsonl:2: invalid JSON",
            id="invalid line in between",
        ),
    ],
)
def test_an_invalid_recording_is_rejected(text: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        list(read_states(write(tmp_path, text)))

    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(None, True, id="recording"),
        pytest.param("kind: Recording", False, id="YAML"),
        pytest.param('{"kind": "Scenario"}', False, id="other kind"),
        pytest.param('["Recording"]', False, id="list"),
        pytest.param("", False, id="empty"),
    ],
)
def test_a_recording_is_known_by_its_first_line(text: str | None, expected: bool, tmp_path: Path) -> None:
    assert is_recording(write(tmp_path, text)) is expected


def test_a_missing_file_is_not_a_recording(tmp_path: Path) -> None:
    assert not is_recording(tmp_path / "missing.jsonl")
