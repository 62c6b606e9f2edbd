"""The webhooks: defaulting and validation of a cache before it is stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from examples.memcached.defaulting import default
from examples.memcached.model import GROUP, VERSION, Memcached
from examples.memcached.validation import regrettable, validate
from ocf.runtime.admission import FieldError, Operation, Warn, Webhook, Webhooks

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["NAME", "webhooks"]

NAME: Final = "memcached-operator"


def webhooks(*, strict: bool = False) -> Webhooks:
    """Return the webhooks of the operator.

    Args:
        strict: Whether to reject a replica count together with autoscaling, and scaling by cpu utilization without a
            request for cpu; otherwise the user gets a warning.
    """
    validator = _strictly if strict else _leniently
    webhook = Webhook(
        GROUP, VERSION, "Memcached", "memcacheds", Memcached, defaulters=[default], validators=[validator]
    )
    return Webhooks(NAME, [webhook])


def _strictly(new: Memcached, _old: Memcached | None, _operation: Operation) -> Iterable[FieldError]:
    return validate(new, strict=True)


def _leniently(new: Memcached, _old: Memcached | None, _operation: Operation) -> Iterator[FieldError | Warn]:
    yield from validate(new)
    yield from (Warn(str(error)) for error in regrettable(new))
