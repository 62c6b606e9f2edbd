"""Protocols and values shared by all packages: resources, statuses, data cells, provenance, recorder, clock."""

from ocf.concepts.clock import Clock, SystemClock
from ocf.concepts.data import Data, data_scope
from ocf.concepts.recorder import Attempt, Event, Recorder
from ocf.concepts.resource import (
    Alive,
    Completable,
    DataConsumer,
    DataProducer,
    Explainable,
    Graceful,
    Guardable,
    Operational,
    Resource,
    Scaler,
    ScaleTarget,
    Suspendable,
)
from ocf.concepts.status import (
    AliveStatus,
    ApplyOperation,
    CompletionStatus,
    GraceStatus,
    GuardStatus,
    OperationalStatus,
    StatusReport,
    SuspensionStatus,
)

__all__ = [
    "Alive",
    "AliveStatus",
    "ApplyOperation",
    "Attempt",
    "Clock",
    "Completable",
    "CompletionStatus",
    "Data",
    "DataConsumer",
    "DataProducer",
    "Event",
    "Explainable",
    "GraceStatus",
    "Graceful",
    "GuardStatus",
    "Guardable",
    "Operational",
    "OperationalStatus",
    "Recorder",
    "Resource",
    "ScaleTarget",
    "Scaler",
    "StatusReport",
    "Suspendable",
    "SuspensionStatus",
    "SystemClock",
    "data_scope",
]
