"""The proof that an operator is quiet: when nothing has changed, it sends no write.

A write that changes nothing still costs the API server a request, and one that changes something each time is a war
with whoever changes it back. Both are invisible until somebody counts.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator

from ocf.cluster import Cluster, Request
from ocf.cluster.interceptor import describe, key_of
from ocf.component import Result
from ocf.errors import ConfigError
from ocf.testing.recording_cluster import RecordingCluster

__all__ = ["Reconcile", "assert_quiet"]

Reconcile = Callable[[Cluster], Awaitable[object]]
"""One pass of an operator over the cluster it is given. A `Result` or several that it returns explain its writes."""


async def assert_quiet(cluster: Cluster, reconcile: Reconcile, *, resyncs: int = 10) -> None:
    """Demand that an operator at rest stays at rest.

    Bring the cluster to where nothing is left to do, then call this. Dry runs are no writes; refused writes are.

    Args:
        cluster: Any cluster.
        reconcile: One pass. It must use the cluster that it is given, or nothing would be counted.
        resyncs: How many passes are made.

    Raises:
        AssertionError: If a pass sent a write: names each with its object, its field manager and, where the pass
            returned results of components, the reasons. Also if no pass asked anything of the cluster.
        ConfigError: If there is nothing to be done.

    Example:
        >>> import asyncio
        >>> from ocf.embedded import EmbeddedCluster
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
    asked = 0
    for number in range(1, resyncs + 1):
        recorded = RecordingCluster(cluster)
        returned = await reconcile(recorded)
        asked += len(recorded.requests)
        if recorded.writes:
            noisy.append((number, recorded.writes, results_in(returned)))
    if not asked:
        raise AssertionError("reconcile asked nothing of the cluster it was given: does it use another one?")
    if noisy:
        number, writes, results = noisy[0]
        title = f"{len(noisy)} of {resyncs} resyncs wrote, though nothing had changed; resync {number} sent"
        raise AssertionError("\n".join([f"{title} {len(writes)}:", *explained(writes, results)]))


def results_in(returned: object) -> tuple[Result, ...]:
    """Pick the results of components out of what a pass returned.

    Args:
        returned: A result, something to iterate over, or anything else.
    """
    if isinstance(returned, Result):
        return (returned,)
    if isinstance(returned, Iterable) and not isinstance(returned, str | bytes):
        return tuple(one for one in returned if isinstance(one, Result))
    return ()


def explained(writes: Iterable[Request], results: Iterable[Result]) -> Iterator[str]:
    """Tell writes line by line, each followed by the reasons that are known.

    Args:
        writes: The writes.
        results: What the components said they did.

    Yields:
        Indented lines.
    """
    reasons = {outcome.resource: outcome.reason_texts for result in results for outcome in result.outcomes}
    told: set[str] = set()
    for write in writes:
        yield f"  {describe(write)}"
        identity = str(key_of(write))
        if identity not in told and not write.subresource:
            told.add(identity)
            yield from (f"    because of {reason}" for reason in reasons.get(identity, ()))
