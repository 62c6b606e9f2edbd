"""The registry of scenarios, and metrics that many of them use.

Each scenario is a generator: the code before a `yield` runs before a tick. Changes of the autoscaler are made after the
next tick. Ticks are slightly more than two seconds apart.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Final, TypeAlias

from ocf.objects import Manifest
from tests.controllers.hpa.comparison.env import Env, external, resource

__all__ = ["HALF", "INGRESS", "NOW", "QUEUE", "SCENARIOS", "Scenario", "policy", "scenario"]

Scenario: TypeAlias = Callable[[Env], AsyncIterator[None]]
SCENARIOS: Final[dict[str, Scenario]] = {}

INGRESS: Final = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "shop"}
HALF: Final = resource(utilization=50)
QUEUE: Final = external("queue", average="10")
NOW: Final = {"stabilizationWindowSeconds": 0}


def scenario(steps: Scenario) -> Scenario:
    SCENARIOS[steps.__name__] = steps
    return steps


def policy(kind: str, value: int, seconds: int) -> Manifest:
    return {"type": kind, "value": value, "periodSeconds": seconds}
