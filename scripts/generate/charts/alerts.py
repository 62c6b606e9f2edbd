"""Alerting rules of the controllers."""

from pathlib import Path
from typing import Any, Final

import yaml

__all__ = ["alert_groups"]

_FILE: Final = Path(__file__).parent / "alerts.yaml"


def alert_groups(controller: str) -> list[dict[str, Any]]:
    """Return the groups of alerting rules of a controller.

    Args:
        controller: `hpa-controller` or `nodegroup-controller`.
    """
    groups: list[dict[str, Any]] = yaml.safe_load(_FILE.read_text(encoding="utf-8"))["groups"]
    return [group for group in groups if group["name"] == f"ocf-{controller}"]
