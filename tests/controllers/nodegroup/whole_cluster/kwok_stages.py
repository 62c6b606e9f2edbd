"""Stages of kwok with nodes that never become ready, and nodes that stop being ready."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from ocf.objects import Manifest
from ocf.objects.yaml_reader import read_yaml

__all__ = ["FAILED", "NEVER_BOOTS", "stages"]

NEVER_BOOTS: Final = "defective"
"""The instance type whose nodes never become ready."""

FAILED: Final = "tests.ocf.dev/failed"
"""The annotation of nodes that kwok does not make ready again."""


def stages() -> list[Manifest]:
    """Return kwok's default stages, with both kinds of nodes left out of the first one."""
    text = files("ocf.testing.envtest").joinpath("kwok_stages.yaml").read_text(encoding="utf-8")
    ready, *others = read_yaml(text, "kwok_stages.yaml")
    ready["spec"]["selector"]["matchExpressions"] += [
        {"key": f'.metadata.annotations["{FAILED}"]', "operator": "DoesNotExist"},
        {
            "key": '.metadata.labels["node.kubernetes.io/instance-type"]',
            "operator": "NotIn",
            "values": [NEVER_BOOTS],
        },
    ]
    return [ready, *others]
