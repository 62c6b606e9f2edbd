"""Where a write stops and asks to be admitted.

A write is a generator: it plans, yields what is about to happen, goes on with what it is sent back, and stores. So the
core does no I/O and waits for nobody, and whoever drives it decides who is asked. A cluster without admission webhooks
drives it in one go.
"""

from collections.abc import Generator
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias, TypeVar

from ocf.embedded.api.write_options import WriteOptions
from ocf.objects import Manifest
from ocf.schema.builtin import ApiResource

__all__ = ["MovedError", "Operation", "PendingWrite", "Phase", "Review", "run_without_admission"]

Result = TypeVar("Result")


class Operation(StrEnum):
    """What happens to an object."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"


class Phase(StrEnum):
    """What an admission may do."""

    MUTATING = "mutating"
    VALIDATING = "validating"


@dataclass(frozen=True, slots=True)
class Review:
    """What is about to happen.

    Args:
        phase: Whether the object may still be changed.
        operation: What happens.
        resource: The kind, in the version of the request.
        namespace: Of the object; empty if it is cluster-scoped.
        name: Of the object; empty where it is still to be generated.
        object: The object as it would be stored; None for a delete.
        old: The object as it is stored; None for a create.
        options: How the request wants to be treated.
    """

    phase: Phase
    operation: Operation
    resource: ApiResource
    namespace: str
    name: str
    object: Manifest | None
    old: Manifest | None
    options: WriteOptions


PendingWrite: TypeAlias = Generator[Review, Manifest | None, Result]
"""A write in progress: it yields reviews, is sent the object to go on with, and returns what is stored."""


class MovedError(Exception):
    """While the write waited to be admitted, somebody else wrote the object: plan it anew."""


def run_without_admission(write: PendingWrite[Result]) -> Result:
    """Do a write without asking anybody.

    Args:
        write: The write.

    Returns:
        What it returns.
    """
    try:
        review = next(write)
        while True:
            review = write.send(review.object)
    except StopIteration as stop:
        result: Result = stop.value
        return result
