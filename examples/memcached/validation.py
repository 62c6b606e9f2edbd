"""Rules of the validating webhook: `validate`, a pure function that returns all errors at once.

The user learns of these errors when applying a cache; otherwise they would show up later in a controller, or not at
all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from examples.memcached.autoscaler import manifest
from ocf import autoscaling
from ocf.errors import QuantityError
from ocf.objects import Quantity
from ocf.runtime.admission import FieldError, invalid, required

if TYPE_CHECKING:
    from examples.memcached.model import DisruptionBudget, Memcached

__all__ = ["OVERHEAD_MB", "regrettable", "validate"]

OVERHEAD_MB: Final = 32
"""Memory that memcached needs in addition to the items: connections, threads, hash table."""
_MIB: Final = 1024 * 1024


def validate(cache: Memcached, *, strict: bool = False) -> tuple[FieldError, ...]:
    """Return the errors in a cache, after defaulting.

    Args:
        cache: The cache that is to be stored.
        strict: Whether autoscaling excludes `spec.replicas`, and scaling by cpu utilization needs a request for cpu.
            If False, `spec.replicas` is the count that is restored when autoscaling is disabled.

    Returns:
        All errors, in the order of the fields; empty if the cache is valid.

    Example:
        >>> from examples.memcached.model import Autoscaling, Memcached, MemcachedSpec
        >>> upside_down = Autoscaling(enabled=True, min_replicas=5, max_replicas=3)
        >>> [str(error) for error in validate(Memcached(spec=MemcachedSpec(autoscaling=upside_down)))]
        ['spec.autoscaling.minReplicas: Invalid value: 5: minReplicas (5) must not be greater than maxReplicas (3)']
    """
    return (
        *_memory(cache),
        *_disruption_budget(cache),
        *_graceful_shutdown(cache),
        *_secrets(cache),
        *_autoscaling(cache),
        *(regrettable(cache) if strict else ()),
    )


def _memory(cache: Memcached) -> Iterator[FieldError]:
    """Reject a memory limit at which memcached would be killed before its item memory is full."""
    limit = ((cache.spec.resources and cache.spec.resources.limits) or {}).get("memory")
    if limit is None or cache.spec.memcached is None:
        return
    field, needed = "spec.resources.limits.memory", cache.spec.memcached.max_memory_mb + OVERHEAD_MB
    try:
        enough = Quantity.parse(limit) >= Quantity.parse(needed * _MIB)
    except QuantityError as error:
        yield invalid(field, limit, str(error))
        return
    if not enough:
        yield invalid(field, limit, f"must be at least maxMemoryMB + {OVERHEAD_MB}Mi, which is {needed}Mi")


def _disruption_budget(cache: Memcached) -> Iterator[FieldError]:
    budget = cache.budget
    if not budget.enabled:
        return
    field = "spec.highAvailability.podDisruptionBudget"
    if budget.min_available is not None and budget.max_unavailable is not None:
        yield invalid(field, _plain(budget), "minAvailable and maxUnavailable are mutually exclusive")
    if budget.min_available is None and budget.max_unavailable is None:
        yield required(field, "one of minAvailable and maxUnavailable must be given")
    yield from _allows_drain(budget, cache.spec.replicas, f"{field}.minAvailable")


def _allows_drain(budget: DisruptionBudget, replicas: int | None, field: str) -> Iterator[FieldError]:
    """Reject a budget that blocks every drain; an unknown replica count or a percentage is not checked."""
    kept = budget.min_available
    if isinstance(kept, int) and replicas is not None and kept >= replicas:
        yield invalid(field, kept, f"minAvailable ({kept}) must be less than replicas ({replicas})")


def _graceful_shutdown(cache: Memcached) -> Iterator[FieldError]:
    shutdown = cache.shutdown
    if not shutdown.enabled:
        return
    delay, period = shutdown.pre_stop_delay_seconds, shutdown.termination_grace_period_seconds
    if period <= delay:
        field = "spec.highAvailability.gracefulShutdown.terminationGracePeriodSeconds"
        yield invalid(field, period, f"must be greater than preStopDelaySeconds ({delay})")


def _secrets(cache: Memcached) -> Iterator[FieldError]:
    if cache.sasl.enabled and not cache.sasl.credentials_secret_ref.name:
        detail = "SASL needs the name of the Secret with the passwords"
        yield required("spec.security.sasl.credentialsSecretRef.name", detail)
    if cache.tls.enabled and not cache.tls.certificate_secret_ref.name:
        detail = "TLS needs the name of the Secret with the certificate"
        yield required("spec.security.tls.certificateSecretRef.name", detail)


def _autoscaling(cache: Memcached) -> Iterator[FieldError]:
    """Report the errors that the API server would report for the autoscaler, while the user can still see them."""
    scaling = cache.spec.autoscaling
    if scaling is None or not scaling.enabled:
        return
    low, high = scaling.min_replicas, scaling.max_replicas
    if high is None:
        yield required("spec.autoscaling.maxReplicas", "autoscaling needs an upper limit")
    elif low is not None and low > high:
        detail = f"minReplicas ({low}) must not be greater than maxReplicas ({high})"
        yield invalid("spec.autoscaling.minReplicas", low, detail)
    for error in autoscaling.validate(manifest(cache)):
        own, _, field = error.path.partition(".")
        if own == "spec" and field.partition("[")[0].partition(".")[0] in _COPIED:
            yield FieldError(f"spec.autoscaling.{field}", error.type, error.value, error.detail, error.as_json)


# These fields are copied to the autoscaler unchanged; the counts have their own rules above.
_COPIED: Final = frozenset({"metrics", "behavior"})


def regrettable(cache: Memcached) -> Iterator[FieldError]:
    """Return the errors of a valid but probably unintended spec; only `strict` rejects it.

    Args:
        cache: The cache that is to be stored.
    """
    if not cache.autoscaled:
        return
    if cache.spec.replicas is not None:
        detail = "replicas and autoscaling.enabled are mutually exclusive: the autoscaler sets the count"
        yield invalid("spec.replicas", cache.spec.replicas, detail)
    requests = (cache.spec.resources and cache.spec.resources.requests) or {}
    if "cpu" not in requests and _scales_by_cpu_utilization(cache):
        detail = "scaling by cpu utilization needs a request for cpu: it is a share of what is requested"
        yield required("spec.resources.requests.cpu", detail)


def _scales_by_cpu_utilization(cache: Memcached) -> bool:
    sources = [metric.resource for metric in (cache.spec.autoscaling and cache.spec.autoscaling.metrics) or []]
    return any(
        source is not None and source.name == "cpu" and source.target.type == "Utilization" for source in sources
    )


def _plain(budget: DisruptionBudget) -> Any:
    return budget.model_dump(mode="json", by_alias=True, exclude_none=True)
