"""What surrounds an autoscaler: who controls it, who else writes the replicas, rollouts, and its last rescales."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from ocf.autoscaling.linter.namespace_index import folded, vertical_target
from ocf.autoscaling.linter.pod_policies import vertical_metrics
from ocf.autoscaling.targets.scaled_objects import is_scaled_object, target_of
from ocf.autoscaling.targets.targets import scale_target_key
from ocf.objects import Manifest
from ocf.objects.managed_fields import ManagedFields
from ocf.objects.owner_references import controller_of
from ocf.objects.paths import get_field
from ocf.objects.timestamps import format_time, parse_time

__all__ = [
    "CONTROLLERS",
    "SCALED_OBJECT",
    "Generation",
    "Rescale",
    "Surroundings",
    "Unread",
    "Writer",
    "role_command",
    "surroundings_of",
]

CONTROLLERS: Final = frozenset({"kube-controller-manager", "ocf-hpa-controller"})
"""The field managers of the HPA controllers."""

_SCALE: Final = "scale"
_SIZE: Final = re.compile(r"New size: (\d+); reason: (.*)", re.DOTALL)
_UP: Final = ("above target", "below Spec.MinReplicas")
_REPLICAS: Final = ("spec", "replicas")


SCALED_OBJECT: Final = ("keda.sh/v1alpha1", "ScaledObject")
"""apiVersion and kind of the autoscalers of KEDA."""


def role_command(namespace: str) -> str:
    """Return the command that prints a Role with all permissions that explain needs."""
    return f"`ocf explain --role --namespace {namespace}`"


class Writer(NamedTuple):
    """A field manager of `spec.replicas` of the target.

    Args:
        at: Its last write of the target; None if that is not known.
        scales: Whether it wrote through the subresource `scale`.
    """

    name: str
    at: datetime | None
    scales: bool

    @property
    def is_hpa_controller(self) -> bool:
        """Whether it is the HPA controller; kube-controller-manager writes the target for other reasons as well."""
        return self.scales and self.name in CONTROLLERS


class Generation(NamedTuple):
    """A ReplicaSet of the target that has replicas."""

    name: str
    replicas: int
    ready: int
    created: datetime | None


class Rescale(NamedTuple):
    """An event `SuccessfulRescale`.

    Args:
        size: The replicas after it.
        is_up: Whether it added replicas.
        times: How often it happened; `at` is the last time.
    """

    size: int
    is_up: bool
    reason: str
    at: datetime
    times: int


class Unread(NamedTuple):
    """Objects that could not be read.

    Args:
        kind: Their kind.
        name: The name of the object; empty for all of the kind.
        problem: The error.
    """

    kind: str
    name: str
    problem: str

    def __str__(self) -> str:
        """Return the objects and the error, for messages."""
        return f"{f'{self.kind} {self.name}'.strip()}: {self.problem}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What surrounds an autoscaler.

    Args:
        owner: Kind and name of the object that controls it; empty without one.
        writers: The field managers of the target's replicas, the latest first.
        scalers: Other autoscalers of the same target.
        verticals: What sets the requests of which a metric is a share: each vertical autoscaler, with the resources.
        generations: The ReplicaSets of the target that have replicas, the newest first.
        rescales: Its rescales, the latest first.
        unread: What could not be read.
    """

    owner: str = ""
    writers: tuple[Writer, ...] = ()
    scalers: tuple[str, ...] = ()
    verticals: tuple[tuple[str, str], ...] = ()
    generations: tuple[Generation, ...] = ()
    rescales: tuple[Rescale, ...] = ()
    unread: tuple[Unread, ...] = ()

    def has_unread(self, *kinds: str) -> bool:
        """Return whether objects of one of some kinds could not be read."""
        return any(each.kind in kinds for each in self.unread)

    @property
    def others(self) -> tuple[Writer, ...]:
        """The writers that are not the HPA controller."""
        return tuple(each for each in self.writers if not each.is_hpa_controller)

    @property
    def written_by(self) -> str:
        """Who wrote the replicas last, as a clause; empty if that was the HPA controller."""
        last = self.writers[0] if self.writers else None
        if last is None or last.is_hpa_controller:
            return ""
        at = "" if last.at is None else f" (its last write: {last.at:%H:%M:%S})"
        return f"the field manager {last.name} owns the replicas of the target{at}"

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "owner": self.owner,
            "writers": [{"manager": each.name, "at": _text(each.at), "scale": each.scales} for each in self.writers],
            "scalers": list(self.scalers),
            "verticalAutoscalers": [{"name": name, "resources": resources} for name, resources in self.verticals],
            "replicaSets": [
                {"name": each.name, "replicas": each.replicas, "ready": each.ready, "created": _text(each.created)}
                for each in self.generations
            ],
            "rescales": [
                {
                    "replicas": each.size,
                    "up": each.is_up,
                    "reason": each.reason,
                    "at": _text(each.at),
                    "times": each.times,
                }
                for each in self.rescales
            ],
            "unread": list(map(str, self.unread)),
        }


def surroundings_of(
    hpa: Manifest,
    target: Manifest | None,
    *,
    scalers: Iterable[Manifest] = (),
    verticals: Iterable[Manifest] = (),
    replica_sets: Iterable[Manifest] = (),
    events: Iterable[Manifest] = (),
    unread: Sequence[Unread] = (),
) -> Surroundings:
    """Read the surroundings of an autoscaler from the objects around it.

    Args:
        target: Its target; None if it could not be read.
        scalers: The autoscalers of the namespace: HPAs, HorizontalAutoscalers and ScaledObjects.
        verticals: The vertical autoscalers of the namespace.
        replica_sets: The ReplicaSets of the namespace.
        events: The events about the autoscaler, as `read_events` returns them.
        unread: What could not be read.
    """
    owner = _controller(hpa)
    generations = sorted(_generations(target, replica_sets), key=lambda each: each.created or _NEVER, reverse=True)
    return Surroundings(
        owner=owner,
        writers=tuple(sorted(_writers(target), key=lambda each: each.at or _NEVER, reverse=True)),
        scalers=tuple(sorted(_scalers(hpa, scalers, owner))),
        verticals=tuple(sorted(_verticals(hpa, verticals))),
        generations=tuple(generations),
        rescales=tuple(_rescales(events)),
        unread=tuple(unread),
    )


_NEVER: Final = parse_time("0001-01-01T00:00:00Z")


def _controller(manifest: Manifest) -> str:
    return str(controller_of(manifest) or "")


def _writers(target: Manifest | None) -> Iterator[Writer]:
    for entry in ManagedFields.of(target).entries:
        if entry.owns(_REPLICAS):
            name, _, subresource = entry.manager
            yield Writer(name, parse_time(entry.time) if entry.time else None, subresource == _SCALE)


def _generations(target: Manifest | None, replica_sets: Iterable[Manifest]) -> Iterator[Generation]:
    wanted = f"{(target or {}).get('kind')} {get_field(target or {}, ('metadata', 'name'))}"
    for each in replica_sets:
        replicas = get_field(each, _REPLICAS) or 0
        if replicas and _controller(each) == wanted:
            created = get_field(each, ("metadata", "creationTimestamp"))
            ready = get_field(each, ("status", "readyReplicas")) or 0
            yield Generation(each["metadata"]["name"], replicas, ready, parse_time(created) if created else None)


def _scalers(hpa: Manifest, scalers: Iterable[Manifest], owner: str) -> Iterator[str]:
    """Yield the other autoscalers of the target, without the one that controls this one and those that it controls."""
    wanted = _target(hpa)
    own = f"{hpa.get('kind')} {get_field(hpa, ('metadata', 'name'))}"
    for each in scalers:
        name = f"{each.get('kind')} {get_field(each, ('metadata', 'name'))}"
        if name not in {own, owner} and _target(each) == wanted and _controller(each) != own:
            yield name


def _verticals(hpa: Manifest, verticals: Iterable[Manifest]) -> Iterator[tuple[str, str]]:
    """Yield the vertical autoscalers of the target's pods that change what a utilization is a percentage of."""
    wanted = folded(scale_target_key(hpa))
    for each in verticals:
        if vertical_target(each) == wanted:
            resources = dict.fromkeys(resource for _, resource in vertical_metrics(hpa["spec"], None, each))
            if resources:
                yield f"{each.get('kind')} {get_field(each, ('metadata', 'name'))}", " and ".join(resources)


def _target(scaler: Manifest) -> tuple[str, str, str]:
    key = target_of(scaler) if is_scaled_object(scaler) else scale_target_key(scaler)
    return (*key.group_kind, key.name)


def _rescales(events: Iterable[Manifest]) -> Iterator[Rescale]:
    """Yield the rescales, the latest first.

    The reason in an event is about what the metrics want, while a window or a limit may decide on the other direction.
    So the size is compared with that of the event before; the reason counts where there is none with another size.
    """
    found = [
        (int(match[1]), match[2], each)
        for each in events
        if each["reason"] == "SuccessfulRescale" and (match := _SIZE.fullmatch(each["message"])) is not None
    ]
    for position, (size, reason, event) in enumerate(found):
        before = found[position + 1][0] if position + 1 < len(found) else size
        is_up = size > before if size != before else reason.endswith(_UP)
        yield Rescale(size, is_up, reason, parse_time(event["at"]), int(event["count"]))


def _text(at: datetime | None) -> str | None:
    return None if at is None else format_time(at)
