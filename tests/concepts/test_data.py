"""Data cells: a value belongs to one reconcile."""

import asyncio

import pytest

from ocf.concepts import Data, data_scope
from ocf.errors import ConfigError, DataNotExtractedError


def test_outside_a_pass_a_cell_is_not_extracted() -> None:
    cell = Data[str]("x")
    assert (cell.is_set, cell.get()) == (False, None)
    with pytest.raises(DataNotExtractedError, match='data "x": data not extracted') as caught:
        cell.require()
    assert caught.value.name == "x"


def test_a_value_lives_as_long_as_the_reconcile() -> None:
    cell = Data[int]("x")
    with data_scope():
        cell.put(1)
        assert (cell.is_set, cell.get(), cell.require()) == (True, 1, 1)
    assert not cell.is_set


def test_the_next_pass_starts_empty() -> None:
    cell = Data[int]("x")
    with data_scope():
        cell.put(1)
    with data_scope():
        assert not cell.is_set


@pytest.mark.parametrize("empty", ["", 0, None, False])
def test_an_empty_value_is_not_the_same_as_none_extracted(empty: object) -> None:
    cell = Data[object]("x")
    with data_scope():
        cell.put(empty)
        assert cell.is_set
        assert cell.require() is empty


def test_storing_outside_a_reconcile_is_rejected_with_a_hint() -> None:
    with pytest.raises(ConfigError, match=r'data "x": .*with cell\.seeded'):
        Data[int]("x").put(1)


def test_two_cells_of_one_name_are_two_cells() -> None:
    one, other = Data[int]("x"), Data[int]("x")
    with one.seeded(1):
        assert not other.is_set


def test_seeding_adds_to_what_is_there_and_ends_with_its_block() -> None:
    one, other = Data[int]("one"), Data[int]("other")
    with one.seeded(1):
        with other.seeded(2), one.seeded(3):
            assert (one.require(), other.require()) == (3, 2)
        assert (one.require(), other.is_set) == (1, False)


async def test_passes_side_by_side_do_not_see_each_other() -> None:
    cell = Data[int]("x")
    both_set = asyncio.Barrier(2)

    async def one_pass(value: int) -> int:
        with data_scope():
            cell.put(value)
            await both_set.wait()
            return cell.require()

    assert tuple(await asyncio.gather(one_pass(1), one_pass(2))) == (1, 2)


def test_a_cell_needs_a_name() -> None:
    with pytest.raises(ConfigError, match="needs a name"):
        Data[int]("")
