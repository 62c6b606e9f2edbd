"""Writes that pause for admission.

A write is a generator: it computes the new object, yields a review, receives the admitted object, and stores it. The
registry therefore does no I/O; the caller that runs the generator calls the webhooks. A cluster without admission
webhooks runs it without a pause.
"""

from collections.abc import Generator
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias, TypeVar

from ocf.objects import Manifest
from ocf.schema.builtin import ApiResource
from ocf_server.api.write_options import WriteOptions
from ocf_server.registry.conversion_review import ConversionNeeded

__all__ = ["ObjectChangedError", "PendingWrite", "Phase", "Review", "WriteOperation", "run_without_admission"]

Result = TypeVar("Result")


class WriteOperation(StrEnum):
    """Operation of an admission request."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"


class Phase(StrEnum):
    """Admission phase: mutating webhooks may change the object, validating webhooks may only reject it."""

    MUTATING = "mutating"
    VALIDATING = "validating"


@dataclass(frozen=True, slots=True)
class Review:
    """Planned write that waits for admission.

    Args:
        resource: The kind, in the version of the request.
        namespace: Namespace of the object; empty if it is cluster-scoped.
        name: Name of the object; empty if it is not yet generated.
        object: The new object; None for a delete.
        old: The stored object; None for a create.
    """

    phase: Phase
    operation: WriteOperation
    resource: ApiResource
    namespace: str
    name: str
    object: Manifest | None
    old: Manifest | None
    options: WriteOptions


PendingWrite: TypeAlias = Generator[Review | ConversionNeeded, Manifest | None, Result]
"""A write in progress, which returns the stored object.

It yields reviews, and is sent the admitted objects; and conversions by webhooks, after whose calls it continues.
"""


class ObjectChangedError(Exception):
    """Another request wrote the object during admission; the write must be repeated from the new state."""


def run_without_admission(write: PendingWrite[Result]) -> Result:
    """Run a write without admission.

    Returns:
        The result of the write.

    Raises:
        ConversionNeeded: If only a webhook can convert the object.
    """
    try:
        review = next(write)
        while True:
            # The caller of this function cannot wait for a webhook.
            if isinstance(review, ConversionNeeded):
                raise review
            review = write.send(review.object)
    except StopIteration as stop:
        result: Result = stop.value
        return result
