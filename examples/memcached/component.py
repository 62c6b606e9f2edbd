"""The component: the objects of a cache, in the order in which they are applied.

`memcached` is a plain function of the owner, without a cluster: tests, golden files and `ocf preview` call it as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from examples.memcached import samples, secrets
from examples.memcached.autoscaler import autoscaler, wanted
from examples.memcached.budget import budget, protected
from examples.memcached.model import Memcached
from examples.memcached.monitor import monitor, monitored
from examples.memcached.naming import labels
from examples.memcached.network import access, restricted, service
from examples.memcached.server import server
from ocf import component
from ocf.concepts import Data
from ocf.objects import load_document

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["NAME", "every_state", "memcached"]

NAME: Final = "memcached"
"""A part of `memcached-operator/Memcached/memcached/<uid>`, the field manager; a change costs a write per object."""


def memcached(cache: Memcached) -> component.Component:
    """Return the component of a cache.

    Its condition is not published: the operator publishes the four of `examples.memcached.conditions` instead.

    Args:
        cache: The owner.
    """
    cells = {name: Data[secrets.Entries](f"secret {name}") for name in secrets.used_secrets(cache)}
    # Labels and selectors are those of the operator that this one is modelled on, not those that `owner=` gives.
    builder = component.Builder(NAME, condition_type="MemcachedReady").unpublished()
    builder.with_namespace(cache.metadata.namespace).with_labels(labels(cache))
    for secret in secrets.reading(cells):
        builder.with_resource(secret, read_only=True, ignore_if_absent=True)
    return (
        builder.with_resource(server(cache, cells))
        # The component finds the Deployment in scaleTargetRef and ignores its replica count from here on.
        .with_resource(autoscaler(cache), gated_by=wanted(cache))
        .with_resource(service(cache))
        .with_resource(budget(cache), gated_by=protected(cache))
        .with_resource(monitor(cache), gated_by=monitored(cache))
        .with_resource(access(cache), gated_by=restricted(cache))
        .suspend(cache.spec.suspended)
        .build()
    )


def every_state() -> Iterator[component.Component]:
    """Yield the component in every state: with all features enabled and with none, each running and suspended."""
    for sample in (samples.EVERYTHING, samples.PLAIN):
        cache = Memcached.model_validate(load_document(sample))
        yield memcached(cache)
        yield memcached(cache.model_copy(update={"spec": cache.spec.model_copy(update={"suspended": True})}))
