"""Values of measures as text."""

from collections.abc import Callable, Mapping
from typing import Final

from ocf.simulation.measures.catalog import MEASURES, MeasureUnit

__all__ = ["duration_text", "number_text", "value_text"]

_MINUTE: Final = 60
_HOUR: Final = 3600
_THOUSAND: Final = 1000
_NOISE: Final = 1e-9
"""Values below it are what sums and exponential functions leave of 0."""


def value_text(name: str, value: float, *, currency: str = "") -> str:
    """Return the value of a measure with its unit.

    Args:
        name: Name of the measure.
        currency: Name of the currency of prices.

    Example:
        >>> value_text("overload_time", 0.02), value_text("latency_p95", 0.25), value_text("time_to_recover_max", 135)
        ('2 %', '250 ms', '2 min 15 s')
        >>> value_text("late_share", 1.55e-21)
        '0 %'
    """
    unit = MEASURES[name].unit
    if unit is MeasureUnit.PRICE:
        return f"{number_text(value)} {currency}".rstrip()
    return _TEXTS[unit](value)


def number_text(value: float) -> str:
    """Return a number with four significant digits, and all digits of its whole part.

    Example:
        >>> number_text(1234567.8), number_text(0.123456), number_text(12), number_text(4e-17)
        ('1 234 568', '0.1235', '12', '0')
    """
    if abs(value) < _NOISE:
        return "0"
    if abs(value) >= _THOUSAND:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.4g}"


def duration_text(seconds: float) -> str:
    """Return a duration in the two largest units that it has.

    Example:
        >>> duration_text(0.0123), duration_text(45), duration_text(3600), duration_text(90_000)
        ('12.3 ms', '45 s', '1 h', '25 h')
    """
    if abs(seconds) < _NOISE:
        return "0 s"
    if seconds < 1:
        return f"{seconds * _THOUSAND:.3g} ms"
    if seconds < _MINUTE:
        return f"{seconds:.3g} s"
    large, small, size, part = ("h", "min", _HOUR, _MINUTE) if seconds >= _HOUR else ("min", "s", _MINUTE, 1)
    whole, rest = divmod(round(seconds / part), size // part)
    return f"{whole} {large} {rest} {small}" if rest else f"{whole} {large}"


def _percent(value: float) -> str:
    return f"{value * 100:.3g} %" if abs(value) >= _NOISE else "0 %"


_TEXTS: Final[Mapping[MeasureUnit, Callable[[float], str]]] = {
    MeasureUnit.SHARE: _percent,
    MeasureUnit.SECONDS: duration_text,
    MeasureUnit.COUNT: number_text,
    MeasureUnit.PODS: number_text,
    MeasureUnit.POD_HOURS: number_text,
    MeasureUnit.POD_SECONDS: number_text,
    MeasureUnit.NODES: number_text,
    MeasureUnit.NODE_HOURS: number_text,
    MeasureUnit.PER_HOUR: lambda value: f"{value:.4g} /h",
    MeasureUnit.LOAD_UNITS: number_text,
    MeasureUnit.PLAIN: number_text,
}
