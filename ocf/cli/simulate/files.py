"""Files that `ocf simulate` writes: the page, and the time series as CSV or Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ocf.cli.output_files import write_file, written_file
from ocf.errors import ConfigError
from ocf.simulation.report import Reported, to_html
from ocf.simulation.report.rows import columns_of, csv_lines, has_dates, instants, run_values, table_names

__all__ = ["parquet_library", "write_csv", "write_parquet", "write_report"]


def write_report(path: Path, runs: Sequence[Reported]) -> None:
    """Write the page."""
    write_file(path, [to_html(runs)], "--report")


def write_csv(path: Path, runs: Sequence[Reported]) -> None:
    """Write the time series as CSV; with several runs, the first column names the run."""
    write_file(path, csv_lines(runs), "--csv")


def parquet_library() -> tuple[Any, Any]:
    """Return the modules that write Parquet."""
    from importlib import import_module

    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise ConfigError("--parquet needs pyarrow: install it with pip install 'ocf[parquet]', or use --csv") from None


def write_parquet(path: Path, runs: Sequence[Reported]) -> None:
    """Write the time series as Parquet, with the columns of the CSV."""
    pa, parquet = parquet_library()
    data: dict[str, Any] = {}
    if len(runs) > 1:
        data["run"] = [run.name for run in runs for _ in run.result.columns.time]
    if has_dates(runs):
        at = [instant for run in runs for instant in instants(run.result)]
        data["at"] = pa.array(at, type=pa.timestamp("us", tz="UTC"))
    for name in table_names(run.result for run in runs):
        found = (columns_of(run.result).get(name) for run in runs)
        kind = pa.int64() if any(each is not None and each.typecode == "q" for each in found) else pa.float64()
        values = [value for run in runs for value in run_values(run.result, name)]
        data[name] = pa.array(values, type=kind)
    with written_file(path, "--parquet") as temporary:
        parquet.write_table(pa.table(data), str(temporary))
