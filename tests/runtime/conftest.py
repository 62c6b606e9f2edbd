from collections.abc import Callable
from typing import Any

import pytest

from ocf.concepts import ApplyOperation, Attempt, Event, Why
from ocf.objects import ObjectKey
from ocf.testing import VirtualClock

OWNER = ObjectKey("example.com/v1", "Shop", "corner", "town")
BACKEND = ObjectKey("apps/v1", "Deployment", "backend", "town")


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def attempt() -> Callable[..., Attempt]:
    """Make an attempt that had nothing to do, or what is said of it."""

    def make(**said: Any) -> Attempt:
        told: dict[str, Any] = {
            "owner": OWNER,
            "component": "web",
            "resource": BACKEND,
            "label": "deployment",
            "operation": ApplyOperation.NONE,
            "why": Why.EQUAL,
        }
        return Attempt(**told | said)

    return make


@pytest.fixture
def event() -> Callable[..., Event]:
    """Make an event about an update, or what is said of it."""

    def make(**said: Any) -> Event:
        told: dict[str, Any] = {
            "owner": OWNER,
            "owner_uid": "uid-of-corner",
            "resource": BACKEND,
            "reason": "UpdatedDeployment",
            "action": "Update",
            "note": "Updated Deployment 'backend'",
        }
        return Event(**told | said)

    return make
