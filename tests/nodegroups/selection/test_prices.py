"""Values of resources."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.nodegroups.packing import NodeTemplate
from ocf.nodegroups.selection import unit_prices
from ocf.nodegroups.snapshot import Node, Resources

sizes = st.tuples(st.integers(1, 64), st.integers(1, 512), st.floats(0.01, 10))


def offers(*given_sizes: tuple[int, int, float]) -> list[NodeTemplate]:
    return [
        NodeTemplate(group="g", price=price, node=Node(name="", allocatable=Resources(cpu=cpu, memory=memory)))
        for cpu, memory, price in given_sizes
    ]


@given(st.lists(sizes, min_size=1, max_size=6), st.tuples(st.integers(0, 999), st.integers(0, 999)))
def test_no_node_is_worth_more_than_its_price(
    given_sizes: list[tuple[int, int, float]], wanted: tuple[int, int]
) -> None:
    prices = unit_prices(offers(*given_sizes), Resources(*wanted))
    for cpu, memory, price in given_sizes:
        assert prices.of(Resources(cpu, memory)) <= price * (1 + 1e-6)


@pytest.mark.parametrize(
    ("given_sizes", "wanted", "expected"),
    [
        pytest.param([(2, 4, 1.0)], (10, 0), 5.0, id="only CPU"),
        pytest.param([(2, 4, 1.0)], (0, 8), 2.0, id="only memory"),
        pytest.param([(2, 2, 1.0), (2, 6, 1.5)], (4, 8), 2.5, id="one node of each type"),
        pytest.param([(2, 2, 1.0), (2, 2, 3.0)], (4, 4), 2.0, id="the cheaper of two equal types"),
        pytest.param([(0, 0, 1.0)], (4, 4), 0.0, id="a type without resources"),
        pytest.param([], (4, 4), 0.0, id="no type"),
    ],
)
def test_the_value_is_the_price_of_fractions_of_nodes(
    given_sizes: list[tuple[int, int, float]], wanted: tuple[int, int], expected: float
) -> None:
    amount = Resources(*wanted)
    assert round(unit_prices(offers(*given_sizes), amount).of(amount), 9) == expected
