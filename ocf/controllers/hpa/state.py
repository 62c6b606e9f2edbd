"""What the controller remembers of each autoscaler; gone with the autoscaler, the process, and the right to lead."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from ocf.autoscaling.algorithm import History, Settings
from ocf.controllers.hpa.dry_run import DryRunResult, ScaleObservation
from ocf.controllers.hpa.parsed_autoscaler import ParsedAutoscaler, parse_autoscaler
from ocf.controllers.hpa.status_writers import StatusWrite
from ocf.objects import Manifest, ObjectKey

__all__ = ["AutoscalerState", "StateStore"]


@dataclass(slots=True)
class AutoscalerState:
    """What is remembered of one autoscaler.

    Args:
        spec: Its spec as it was read last.
        subject: What that says.
        history: Recommendations and changes.
        written: Who else had written its status when it was first looked at; None for nobody.
        scene: What a dry run saw last.
        told: What a dry run said last.
        problem: What failed the last time.
    """

    spec: Manifest
    parsed: ParsedAutoscaler
    history: History = field(default_factory=History)
    foreign_write: StatusWrite | None = None
    observed: ScaleObservation | None = None
    reported: DryRunResult | None = None
    problem: str = ""


class StateStore:
    """What is remembered of all autoscalers.

    Args:
        settings: The controller's settings.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._states: dict[ObjectKey, AutoscalerState] = {}

    def __len__(self) -> int:
        return len(self._states)

    def __iter__(self) -> Iterator[AutoscalerState]:
        return iter(self._states.values())

    def is_current(self, key: ObjectKey, state: AutoscalerState) -> bool:
        """Tell whether this is what is remembered of an autoscaler: it may have been deleted meanwhile.

        Args:
            key: The autoscaler.
            state: What was remembered of it.
        """
        return self._states.get(key) is state

    def get_or_create(self, key: ObjectKey, manifest: Manifest) -> tuple[AutoscalerState, bool]:
        """Return what is remembered of an autoscaler, with its spec as it is now.

        One that was deleted and made anew is another one.

        Args:
            key: The autoscaler.
            manifest: Its manifest.

        Returns:
            What is remembered, and whether it is new.
        """
        known = self._states.get(key)
        spec = manifest.get("spec") or {}
        if known is not None and known.parsed.uid == manifest["metadata"].get("uid", ""):
            if known.spec != spec:
                known.spec, known.parsed = spec, parse_autoscaler(manifest, self._settings)
            return known, False
        made = self._states[key] = AutoscalerState(spec, parse_autoscaler(manifest, self._settings))
        return made, True

    def forget(self, key: ObjectKey) -> None:
        """Forget an autoscaler.

        Args:
            key: The autoscaler.
        """
        self._states.pop(key, None)
