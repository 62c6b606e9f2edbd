"""A recording cluster records the requests to any cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ocf.errors import NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.testing import RecordingCluster

if TYPE_CHECKING:
    from collections.abc import Callable

    from ocf_server import EmbeddedCluster
    from tests.testing.conftest import Operator


async def test_it_records_the_same_as_the_embedded_cluster(operator: Operator, cluster: EmbeddedCluster) -> None:
    cluster.requests.clear()
    recorded = RecordingCluster(cluster)
    await operator.reconcile(recorded)
    wanted = [(one.verb, one.kind, one.name, one.field_manager, one.code) for one in cluster.requests]
    assert [(one.verb, one.kind, one.name, one.field_manager, one.code) for one in recorded.requests] == wanted
    assert len(recorded.writes) == cluster.requests.writes == 3


async def test_a_rejected_request_is_recorded_with_its_code(cluster: EmbeddedCluster) -> None:
    recorded = RecordingCluster(cluster)
    with pytest.raises(NotFoundError):
        await recorded.delete(ObjectKey("v1", "ConfigMap", "none", "shop"))
    (write,) = recorded.writes
    assert write.code == 404


async def test_a_dry_run_is_not_a_write(cluster: EmbeddedCluster, settings: Callable[..., Manifest]) -> None:
    recorded = RecordingCluster(cluster)
    await recorded.apply(settings(), field_manager="me", dry_run=True)
    assert recorded.writes == ()
    assert len(recorded.requests) == 1
