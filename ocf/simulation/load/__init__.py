"""Loads: step functions of time, read from files or generated."""

from ocf.simulation.load.files import CsvLoad, FileLoad, Gaps, JsonLoad, PrometheusLoad, RecordingLoad, TimeUnit, Unit
from ocf.simulation.load.generators import (
    GeneratedLoad,
    RampLoad,
    RateChange,
    SineLoad,
    SpikeLoad,
    SteadyLoad,
    StepsLoad,
)
from ocf.simulation.load.loads import AnyLoad, Loads
from ocf.simulation.load.noise import NoiseLoad
from ocf.simulation.load.patterns import DailyLoad, Weekday, WeeklyLoad
from ocf.simulation.load.series import LoadSeries

__all__ = [
    "AnyLoad",
    "CsvLoad",
    "DailyLoad",
    "FileLoad",
    "Gaps",
    "GeneratedLoad",
    "JsonLoad",
    "LoadSeries",
    "Loads",
    "NoiseLoad",
    "PrometheusLoad",
    "RampLoad",
    "RateChange",
    "RecordingLoad",
    "SineLoad",
    "SpikeLoad",
    "SteadyLoad",
    "StepsLoad",
    "TimeUnit",
    "Unit",
    "Weekday",
    "WeeklyLoad",
]
