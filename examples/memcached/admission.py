"""The webhooks: what is added to a cache, and what is refused, before it is stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from examples.memcached.defaulting import default
from examples.memcached.definition import definition
from examples.memcached.model import Memcached
from examples.memcached.validation import regrettable, validate
from ocf.runtime.admission import FieldError, Operation, Warn, Webhook, Webhooks

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["NAME", "webhooks"]

NAME: Final = "memcached-operator"


def webhooks(*, strict: bool = False) -> Webhooks:
    """Return the webhooks of the operator.

    Args:
        strict: Whether a count beside autoscaling, and scaling by cpu utilization without a request for cpu, are
            refused; otherwise the user is warned.
    """
    judge = _strictly if strict else _leniently
    return Webhooks(NAME, [Webhook.of(definition(), Memcached, defaulters=[default], validators=[judge])])


def _strictly(new: Memcached, _old: Memcached | None, _operation: Operation) -> Iterable[FieldError]:
    return validate(new, strict=True)


def _leniently(new: Memcached, _old: Memcached | None, _operation: Operation) -> Iterator[FieldError | Warn]:
    yield from validate(new)
    yield from (Warn(str(error)) for error in regrettable(new))
