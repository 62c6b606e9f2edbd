"""Offline validation and defaulting of an HPA.

A component may validate every autoscaler that it renders, and a simulation defaults thousands of them, so both must
cost less than rendering one. The baseline is dumping the same object as JSON, which every request to a real API server
needs, in addition to the network.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from benchmarks.figures import Case, Suite
from benchmarks.timer import each_call
from ocf.autoscaling import decode, default, lint, validate
from ocf.objects import Quantity

__all__ = ["TYPICAL", "suite"]

_VALIDATE_LIMIT: Final = 100_000
_QUANTITY_LIMIT: Final = 2_000
_QUANTITY: Final = "512Mi"


def _resource(name: str, utilization: int) -> dict[str, Any]:
    target = {"type": "Utilization", "averageUtilization": utilization}
    return {"type": "Resource", "resource": {"name": name, "target": target}}


def _rules(window: int) -> dict[str, Any]:
    policies = [
        {"type": "Pods", "value": 4, "periodSeconds": 60},
        {"type": "Percent", "value": 10, "periodSeconds": 60},
    ]
    return {"stabilizationWindowSeconds": window, "policies": policies, "selectPolicy": "Min", "tolerance": "50m"}


TYPICAL: Final[dict[str, Any]] = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "backend", "namespace": "shop", "labels": {"app.kubernetes.io/version": "2.3.1"}},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "backend"},
        "minReplicas": 2,
        "maxReplicas": 10,
        "metrics": [_resource("cpu", 70), _resource("memory", 80)],
        "behavior": {"scaleUp": _rules(0), "scaleDown": _rules(300)},
    },
}
_WRONG: Final[dict[str, Any]] = {
    **TYPICAL,
    "spec": {**TYPICAL["spec"], "minReplicas": 0, "maxReplicas": -1, "metrics": [{}]},
}


@contextmanager
def suite() -> Iterator[Suite]:
    """Give the cases."""
    assert validate(TYPICAL) == ()
    assert len(validate(_WRONG)) == 7
    yield [
        Case(name="hpa.json", what="dumping an HPA as JSON", measure=each_call(lambda: json.dumps(TYPICAL))),
        Case(
            name="hpa.validate",
            what="validating an HPA: two metrics, four policies",
            measure=each_call(lambda: validate(TYPICAL)),
            limit=_VALIDATE_LIMIT,
            against="hpa.json",
        ),
        Case(
            name="hpa.wrong",
            what="validating one with seven mistakes",
            measure=each_call(lambda: validate(_WRONG)),
            against="hpa.json",
        ),
        Case(
            name="hpa.decode", what="of this: decoding", measure=each_call(lambda: decode(TYPICAL)), against="hpa.json"
        ),
        Case(
            name="hpa.default",
            what="defaulting an HPA",
            measure=each_call(lambda: default(TYPICAL)),
            against="hpa.json",
        ),
        Case(name="hpa.lint", what="linting an HPA", measure=each_call(lambda: lint(TYPICAL)), against="hpa.json"),
        Case(
            name="hpa.quantity",
            what="reading a quantity",
            measure=each_call(lambda: Quantity.parse(_QUANTITY)),
            limit=_QUANTITY_LIMIT,
        ),
    ]
