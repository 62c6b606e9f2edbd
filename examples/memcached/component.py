"""The component: the objects of a cache, in the order in which they are made.

`memcached` is a plain function of the owner, without a cluster: tests, goldens and `ocf preview` call it, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from examples.memcached import samples, secrets
from examples.memcached.autoscaler import autoscaler, wanted
from examples.memcached.budget import budget, protected
from examples.memcached.model import Memcached
from examples.memcached.monitor import monitor, monitored
from examples.memcached.network import access, restricted, service
from examples.memcached.server import server
from ocf import component
from ocf.concepts import Data
from ocf.objects import load_document

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["NAME", "every_state", "memcached"]

NAME: Final = "memcached"
"""A part of the field manager's name, `Memcached/memcached/<uid>`; changing it costs a write per object."""


def memcached(cache: Memcached) -> component.Component:
    """Describe a cache.

    Its condition stays unpublished: users know the four of `examples.memcached.conditions`.

    Args:
        cache: The owner.
    """
    cells = {name: Data[secrets.Entries](f"secret {name}") for name in secrets.used_secrets(cache)}
    builder = component.Builder(NAME, condition_type="MemcachedReady").unpublished()
    for secret in secrets.reading(cache, cells):
        builder.with_resource(secret, read_only=True, ignore_if_absent=True)
    return (
        builder.with_resource(server(cache, cells))
        # The autoscaler says itself what it scales, so the count of the Deployment is left to it from now on.
        .with_resource(autoscaler(cache), gated_by=wanted(cache))
        .with_resource(service(cache))
        .with_resource(budget(cache), gated_by=protected(cache))
        .with_resource(monitor(cache), gated_by=monitored(cache))
        .with_resource(access(cache), gated_by=restricted(cache))
        .suspend(cache.spec.suspended)
        .build()
    )


def every_state() -> Iterator[component.Component]:
    """Yield the component in every state: with all that can be switched on, without, and asleep."""
    for sample in (samples.EVERYTHING, samples.PLAIN):
        cache = Memcached.model_validate(load_document(sample))
        yield memcached(cache)
        yield memcached(cache.model_copy(update={"spec": cache.spec.model_copy(update={"suspended": True})}))
