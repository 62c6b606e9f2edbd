from collections.abc import Callable
from typing import Any

import pytest

from ocf.concepts import ApplyOperation, Attempt, Event
from ocf.concepts.recorder import Why
from ocf.objects import ObjectKey
from ocf.testing import VirtualClock

OWNER = ObjectKey("example.com/v1", "Shop", "corner", "town")
BACKEND = ObjectKey("apps/v1", "Deployment", "backend", "town")


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def attempt() -> Callable[..., Attempt]:
    """Return a factory of attempts without changes; keyword arguments override fields."""

    def make(**overrides: Any) -> Attempt:
        defaults: dict[str, Any] = {
            "owner": OWNER,
            "component": "web",
            "resource": BACKEND,
            "label": "deployment",
            "operation": ApplyOperation.NONE,
            "why": Why.EQUAL,
        }
        return Attempt(**defaults | overrides)

    return make


@pytest.fixture
def event() -> Callable[..., Event]:
    """Return a factory of events about an update; keyword arguments override fields."""

    def make(**overrides: Any) -> Event:
        defaults: dict[str, Any] = {
            "owner": OWNER,
            "owner_uid": "uid-of-corner",
            "resource": BACKEND,
            "reason": "UpdatedDeployment",
            "action": "Update",
            "note": "Updated Deployment 'backend'",
        }
        return Event(**defaults | overrides)

    return make
