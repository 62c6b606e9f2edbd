"""Random delays."""

from random import Random

from ocf.simulation.engine.clock import microseconds
from ocf.simulation.scenario.workload import Delay

__all__ = ["drawn", "exponential"]


def drawn(delay: Delay, random: Random) -> int:
    """Draw a delay.

    Args:
        random: The stream of random numbers; a delay without spread takes none of them.

    Returns:
        Microseconds, at least 0.
    """
    least = max(0, microseconds(delay.mean - delay.spread))
    most = microseconds(delay.mean + delay.spread)
    return least + int(random.random() * (most - least + 1)) if most > least else least


def exponential(random: Random) -> float:
    """Draw from the exponential distribution with mean 1, by comparisons only, which are the same on every machine.

    The algorithm is that of J. von Neumann, Various techniques used in connection with random digits (1951): a run of
    falling numbers has an odd length with the probability exp(-x), where x is its first number.

    Example:
        >>> stream = Random(1)
        >>> round(sum(exponential(stream) for _ in range(10_000)) / 10_000, 1)
        1.0
    """
    whole = 0
    while True:
        first = last = random.random()
        is_odd = True
        while (following := random.random()) < last:
            last = following
            is_odd = not is_odd
        if is_odd:
            return whole + first
        whole += 1
