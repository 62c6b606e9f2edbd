import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from ocf.concepts import Attempt, Event
from ocf.concepts.recorder import NullRecorder
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.events import multi_recorder
from ocf.runtime.events.recorders import rewrite_events


class Notes:
    def __init__(self) -> None:
        self.taken: list[Any] = []

    def attempted(self, attempt: Attempt) -> None:
        self.taken.append(attempt)

    def happened(self, event: Event) -> None:
        self.taken.append(event)

    def observed(self, owner: ObjectKey, conditions: Sequence[Manifest]) -> None:
        self.taken.append((owner, conditions))


class Broken(NullRecorder):
    def happened(self, event: Event) -> None:
        raise RuntimeError(event.reason)


def test_each_recorder_is_told_everything(attempt: Callable[..., Attempt], event: Callable[..., Event]) -> None:
    first, second = Notes(), Notes()
    both = multi_recorder(first, second)
    both.attempted(attempt())
    both.happened(event())
    both.observed(event().owner, [{"type": "WebReady"}])

    assert first.taken == second.taken == [attempt(), event(), (event().owner, [{"type": "WebReady"}])]


def test_an_error_of_a_recorder_ends_no_reconcile(
    event: Callable[..., Event], caplog: pytest.LogCaptureFixture
) -> None:
    """Neither the pass nor the recorder behind it fails; the log says what was wrong."""
    behind = Notes()
    with caplog.at_level(logging.ERROR, "ocf.runtime"):
        multi_recorder(Broken(), behind).happened(event())

    assert behind.taken == [event()]
    assert [record.getMessage() for record in caplog.records] == ["Broken failed; the reconcile continues"]


def test_none_at_all_keeps_nothing(event: Callable[..., Event]) -> None:
    multi_recorder().happened(event())


def test_other_words_for_events_and_none_for_some(attempt: Callable[..., Attempt], event: Callable[..., Event]) -> None:
    notes = Notes()
    recorder = rewrite_events(notes, lambda one: replace(one, note="said") if one.reason == "Kept" else None)
    recorder.happened(event())
    recorder.happened(event(reason="Kept"))
    recorder.attempted(attempt())
    recorder.observed(event().owner, [])

    assert notes.taken == [event(reason="Kept", note="said"), attempt(), (event().owner, [])]
