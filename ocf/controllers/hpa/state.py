"""State of each autoscaler in memory; dropped with the autoscaler, with the process, and when the lease is lost."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from ocf.autoscaling.algorithm import History, Settings
from ocf.controllers.hpa.dry_run import DryRunResult, ScaleObservation
from ocf.controllers.hpa.parsed_autoscaler import ParsedAutoscaler, parse_autoscaler
from ocf.controllers.hpa.take_over import AutoscalerClaim, StatusWrite
from ocf.objects import Manifest, ObjectKey

__all__ = ["AutoscalerState", "StateStore"]


@dataclass(slots=True)
class AutoscalerState:
    """The state of one autoscaler.

    Args:
        generation: The generation of the spec; None if the cluster does not count it.
        claim: What is remembered of its ownership, in mode replace.
        foreign_write: The last write of another client to its status that was seen, in mode replace.
        run_version: The resourceVersion at which it may be run; None if that has to be decided.
        observed: The scale that the last dry run observed.
        problem: The last failure; empty if the last reconcile succeeded.
    """

    spec: Manifest
    parsed: ParsedAutoscaler
    generation: int | None = None
    history: History = field(default_factory=History)
    claim: AutoscalerClaim = field(default_factory=AutoscalerClaim)
    foreign_write: StatusWrite | None = None
    run_version: str | None = None
    observed: ScaleObservation | None = None
    reported: DryRunResult | None = None
    problem: str = ""


class StateStore:
    """The states of all autoscalers."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._states: dict[ObjectKey, AutoscalerState] = {}

    def __len__(self) -> int:
        return len(self._states)

    def __iter__(self) -> Iterator[AutoscalerState]:
        return iter(self._states.values())

    def is_current(self, key: ObjectKey, state: AutoscalerState) -> bool:
        """Return whether this is the current state of an autoscaler, which may have been deleted meanwhile."""
        return self._states.get(key) is state

    def get_or_create(self, key: ObjectKey, manifest: Manifest) -> tuple[AutoscalerState, bool]:
        """Return the state of an autoscaler, with its present spec.

        An autoscaler that was deleted and created again gets a new state.

        Returns:
            The state, and whether it is new.
        """
        known = self._states.get(key)
        spec = manifest.get("spec") or {}
        if known is not None and known.parsed.uid == manifest["metadata"].get("uid", ""):
            generation = manifest["metadata"].get("generation")
            # Before 1.37 the API server counts no generation of a HorizontalPodAutoscaler, so the specs are compared as
            # well.
            if known.generation != generation or known.spec != spec:
                known.spec, known.generation = spec, generation
                known.parsed = parse_autoscaler(manifest, self._settings)
            return known, False
        parsed = parse_autoscaler(manifest, self._settings)
        created = self._states[key] = AutoscalerState(spec, parsed, manifest["metadata"].get("generation"))
        return created, True

    def forget(self, key: ObjectKey) -> None:
        """Drop the state of an autoscaler."""
        self._states.pop(key, None)
