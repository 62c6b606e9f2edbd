"""What passes are made of: the border between manifests and models, the quiet rule, the embedded cluster.

None of these has a limit; they say where the time of the other figures goes.
"""

import asyncio
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

from kubernetes.client import V2HorizontalPodAutoscaler

from benchmarks.autoscaler import NAMESPACE, base, plain
from benchmarks.figures import Case, Suite
from benchmarks.timer import each_call, each_turn
from ocf.cluster.embedded import EmbeddedCluster
from ocf.component.quiet import Difference, differences
from ocf.objects import Manifest, ObjectKey, is_quantity_field, read_base, read_live

__all__ = ["suite"]

_API_VERSION: Final = "autoscaling/v2"
_KIND: Final = "HorizontalPodAutoscaler"
_TARGET: Final = "backend"
_KEY: Final = ObjectKey(_API_VERSION, _KIND, _TARGET, NAMESPACE)
_MANAGER: Final = "benchmark"


@contextmanager
def suite() -> Iterator[Suite]:
    """Give the cases."""
    cluster = EmbeddedCluster(namespaces=(NAMESPACE,))
    wanted = plain(_TARGET)
    sizes = itertools.cycle((20, 10))

    async def apply_changed() -> None:
        changed = {**wanted, "spec": {**wanted["spec"], "maxReplicas": next(sizes)}}
        await cluster.apply(changed, field_manager=_MANAGER)

    with asyncio.Runner() as runner:
        live = runner.run(cluster.apply(wanted, field_manager=_MANAGER))
        assert not _compare(wanted, live)
        yield [
            Case(name="parts.base", what="reading a base, strictly", measure=each_call(_read_base)),
            Case(
                name="parts.live",
                what="reading a live HPA for a handler",
                measure=each_call(lambda: read_live(live, V2HorizontalPodAutoscaler)),
            ),
            Case(
                name="parts.compare",
                what="finding that an apply would change nothing",
                measure=each_call(lambda: _compare(wanted, live)),
            ),
            Case(
                name="parts.get",
                what="get on the embedded cluster",
                measure=each_turn(runner, lambda: cluster.get(_KEY)),
            ),
            Case(
                name="parts.apply",
                what="apply of a changed HPA on the embedded cluster",
                measure=each_turn(runner, apply_changed),
            ),
        ]


def _read_base() -> Manifest:
    return read_base(base(_TARGET), V2HorizontalPodAutoscaler, api_version=_API_VERSION, kind=_KIND)


def _compare(wanted: Manifest, live: Manifest) -> list[Difference]:
    is_quantity = partial(is_quantity_field, _API_VERSION, _KIND)
    return list(differences(wanted, live, manager=_MANAGER, rewrites={}, is_quantity=is_quantity))
