"""Proof that an operator sends no write while nothing has changed.

A write without effect still costs the API server a request, and a write that changes something in every reconcile means
that the operator fights another controller. Neither is visible without counting the writes.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from datetime import timedelta

from ocf.cluster import Cluster, Request
from ocf.cluster.interceptor import describe, key_of
from ocf.component import Result
from ocf.errors import ConfigError
from ocf.testing.recording_cluster import RecordingCluster

__all__ = ["Reconcile", "assert_quiet"]

Reconcile = Callable[[Cluster], Awaitable[object]]
"""One reconcile of an operator on the given cluster.

If it returns one or several `Result`, they explain its writes. Their `requeue_after`, or a `timedelta` such as
`context.delay`, is when the operator would reconcile again without an event.
"""


async def assert_quiet(cluster: Cluster, reconcile: Reconcile, *, resyncs: int = 10) -> None:
    """Check that an operator sends no write when everything is in sync.

    Bring the cluster in sync before the call. Rejected writes count as writes, dry runs do not.

    Args:
        cluster: Any cluster.
        reconcile: One reconcile. It must use the cluster that it is given, because only that one counts requests.
        resyncs: Number of reconciles, at least 1.

    Raises:
        AssertionError: If a reconcile sent a write; lists each with its object, its field manager and, if the reconcile
            returned results of components, the reasons. Also if no reconcile sent any request to the cluster.
        ConfigError: If `resyncs` is less than 1.

    Example:
        >>> import asyncio
        >>> from ocf_server import EmbeddedCluster
        >>> settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}
        >>> async def noisy(cluster: Cluster) -> None:
        ...     await cluster.apply(settings, field_manager="demo")
        >>> try:
        ...     asyncio.run(assert_quiet(EmbeddedCluster(), noisy, resyncs=3))
        ... except AssertionError as error:
        ...     print(error)
        3 of 3 resyncs wrote, though nothing had changed; resync 1 sent 1:
          apply v1/ConfigMap/default/a by demo
    """
    __tracebackhide__ = True
    if resyncs < 1:
        raise ConfigError(f"resyncs must be at least 1, got {resyncs}")
    noisy: list[tuple[int, tuple[Request, ...], tuple[Result, ...]]] = []
    sent = 0
    for number in range(1, resyncs + 1):
        recorded = RecordingCluster(cluster)
        returned = await reconcile(recorded)
        sent += len(recorded.requests)
        if recorded.writes:
            noisy.append((number, recorded.writes, results_in(returned)))
    if not sent:
        raise AssertionError("reconcile sent no request to the cluster it was given: does it use another one?")
    if noisy:
        number, writes, results = noisy[0]
        title = f"{len(noisy)} of {resyncs} resyncs wrote, though nothing had changed; resync {number} sent"
        raise AssertionError("\n".join([f"{title} {len(writes)}:", *explained(writes, results)]))


def results_in(returned: object) -> tuple[Result, ...]:
    """Return the results of components among the return value of a reconcile."""
    if isinstance(returned, Result):
        return (returned,)
    if isinstance(returned, Iterable) and not isinstance(returned, str | bytes):
        return tuple(one for one in returned if isinstance(one, Result))
    return ()


def delay_in(returned: object) -> timedelta | None:
    """Return the earliest delay among the return value of a reconcile; None if it asks for none."""
    if isinstance(returned, timedelta):
        return returned
    delays = [result.requeue_after for result in results_in(returned)]
    if isinstance(returned, Iterable):
        delays += [one for one in returned if isinstance(one, timedelta)]
    return min((delay for delay in delays if delay is not None), default=None)


def explained(writes: Iterable[Request], results: Iterable[Result]) -> Iterator[str]:
    """Render writes line by line, each followed by its known reasons."""
    reasons = {outcome.resource: outcome.reason_texts for result in results for outcome in result.outcomes}
    explained_objects: set[str] = set()
    for write in writes:
        yield f"  {describe(write)}"
        identity = str(key_of(write))
        if identity not in explained_objects and not write.subresource:
            explained_objects.add(identity)
            yield from (f"    because of {reason}" for reason in reasons.get(identity, ()))
