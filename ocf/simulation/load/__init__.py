"""Loads: step functions of time, read from files or generated."""

from ocf.simulation.load.series import LoadSeries

__all__ = [
    "LoadSeries",
]
