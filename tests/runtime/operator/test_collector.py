"""The garbage collector in the process of an operator."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from ocf.runtime.operator.run import seldom_collecting


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.fixture
def _unfrozen() -> Iterator[None]:
    """Unfreeze what the test session has frozen, and freeze it again."""
    gc.unfreeze()
    yield
    gc.collect()  # what is frozen is never collected
    gc.freeze()


@pytest.mark.parametrize(
    ("young", "within"),
    [
        pytest.param(700, 10_000, id="the default of Python is raised"),
        pytest.param(50_000, 50_000, id="a larger threshold of the program is kept"),
        pytest.param(0, 0, id="a disabled collector stays disabled"),
    ],
)
def test_the_youngest_generation_is_collected_seldom(young: int, within: int) -> None:
    gc.set_threshold(young, 7, 8)
    with seldom_collecting():
        assert gc.get_threshold() == (within, 7, 8)


@pytest.mark.usefixtures("_unfrozen")
def test_what_existed_before_is_not_traversed() -> None:
    before: list[object] = [[]]
    with seldom_collecting():
        assert gc.get_freeze_count() > 0
        assert not any(known is before for known in gc.get_objects())


@pytest.mark.usefixtures("_unfrozen")
def test_an_error_restores_the_collector() -> None:
    gc.set_threshold(123, 7, 8)
    with pytest.raises(RuntimeError), seldom_collecting():
        raise RuntimeError
    assert gc.get_threshold() == (123, 7, 8)
    assert gc.get_freeze_count() == 0


def test_what_the_program_has_frozen_stays_frozen_and_nothing_else_is() -> None:
    gc.freeze()
    frozen = gc.get_freeze_count()
    made: list[object] = [[]]
    with seldom_collecting():
        assert any(known is made for known in gc.get_objects())
    assert gc.get_freeze_count() == frozen
