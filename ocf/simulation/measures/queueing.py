"""The stationary queue M/M/c: Poisson arrivals, exponential service times, c servers, first come first served.

See L. Kleinrock, Queueing Systems, or https://octave.sourceforge.io/queueing/function/erlangc.html.
"""

from math import exp, sqrt
from typing import Final

__all__ = ["exceeding", "servers_of", "waiting_probability"]

# The probability is about one over it, which is less than the last bit of a float.
_NEGLIGIBLE: Final = 1e16
_SPREADS: Final = 9
_CLOSE: Final = 1e-6


def servers_of(capacity: float, pod_capacity: float, service_time: float) -> tuple[int, float]:
    """Return the number of servers that a capacity is, and the service rate of one.

    Args:
        capacity: Load units per second of all pods; 0 is one server at the rate of an idle pod.
        pod_capacity: Load units per second that a warm pod serves.
        service_time: Seconds that a load unit takes on an idle pod, more than 0; a pod is at least one server.

    Example:
        >>> servers_of(20, 10, 0.5), servers_of(20, 10, 0.01)
        ((10, 2.0), (2, 10.0))
    """
    servers = max(1, round(capacity * max(service_time, 1 / pod_capacity)))
    return servers, capacity / servers or 1 / service_time


def waiting_probability(servers: int, utilization: float) -> float:
    """Return the probability that an arrival has to wait, by the Erlang C formula.

    Args:
        servers: Number of servers, at least 1.
        utilization: Arrival rate over the service rate of all servers, at least 0 and less than 1.

    Example:
        >>> round(waiting_probability(1, 0.8), 6), round(waiting_probability(2, 0.75), 6)
        (0.8, 0.642857)
    """
    offered = servers * utilization
    if offered == 0:
        return 0.0
    # 1 / Erlang B, by recursion over the servers. Errors shrink below the offered load, so with many servers it begins
    # nine standard deviations below, at an approximation.
    first = max(0, int(offered - _SPREADS * sqrt(offered) - _SPREADS))
    inverse = 1 / (1 - first / offered)
    for number in range(first + 1, servers + 1):
        inverse = 1 + inverse * number / offered
        if inverse > _NEGLIGIBLE:
            return 0.0
    return 1 / (utilization + (1 - utilization) * inverse)


def exceeding(time: float, *, service_rate: float, slack: float, waiting: float) -> float:
    """Return the probability that waiting and service together take longer.

    Args:
        time: Seconds, not negative.
        service_rate: Service rate of one server, per second.
        slack: Service rate of all servers minus the arrival rate, per second; more than 0 if arrivals wait.
        waiting: Probability that an arrival has to wait.

    Example:
        >>> round(exceeding(2.0, service_rate=1.0, slack=0.25, waiting=0.75), 6)  # M/M/1: exp(-0.25 * 2)
        0.606531
    """
    served = exp(-service_rate * time)
    if waiting == 0:
        return served
    ratio = slack / service_rate
    # The limit for equal rates, near which the difference below would lose its digits.
    if abs(ratio - 1) < _CLOSE:
        both = (1 + service_rate * time) * served
    else:
        both = (ratio * served - exp(-slack * time)) / (ratio - 1)
    return (1 - waiting) * served + waiting * both
