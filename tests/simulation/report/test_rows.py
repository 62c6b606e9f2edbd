"""Time series as tables."""

from math import nan

from ocf.simulation.report.rows import COLUMN_NAMES, column_values, text_rows
from tests.simulation.runs import columns


def test_rows_have_shortest_texts_and_no_value_is_empty() -> None:
    made = columns([0, 0.1], load=[1e6, 1 / 3], utilization=[nan, 0.5], wanted=[-1, 3], ready=[2, 0])
    first, second = (dict(zip(COLUMN_NAMES, row, strict=True)) for row in text_rows(made))
    assert (first["time"], first["load"], first["utilization"], first["wanted"], first["ready"]) == (
        "0",
        "1000000",
        "",
        "",
        "2",
    )
    assert (second["time"], second["load"], second["utilization"], second["wanted"]) == (
        "0.1",
        "0.3333333333333333",
        "0.5",
        "3",
    )


def test_columns_have_none_where_there_is_no_value() -> None:
    made = columns([0, 1], utilization=[nan, 0.5], wanted=[-1, 3])
    assert column_values(made, "utilization") == [None, 0.5]
    assert column_values(made, "wanted") == [None, 3]
