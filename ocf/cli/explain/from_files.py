"""Snapshot of an autoscaler from files: the HPA, its target, pods, and answers of the metrics APIs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ocf.autoscaling import FeatureGates, validate
from ocf.autoscaling.algorithm import Autoscaler, History, Snapshot, Unavailable
from ocf.autoscaling.algorithm.snapshot import MetricValues
from ocf.autoscaling.api.betas import not_served
from ocf.autoscaling.api.kinds import kind_problem
from ocf.autoscaling.api.versions import read_hpa
from ocf.autoscaling.explain.rescale_events import scaled_up
from ocf.autoscaling.linter.namespace_index import VERTICAL
from ocf.cli.explain.events import creation_time, events_about, read_events, rescale_events
from ocf.cli.explain.input_validation import check, check_target, entries
from ocf.cli.explain.metric_files import MEASUREMENTS, read_metric
from ocf.cli.explain.recorded_objects import recorded_objects
from ocf.cli.explain.surroundings import SCALED_OBJECT, Surroundings, surroundings_of
from ocf.cli.manifest_files import Document, read_documents
from ocf.errors import ConfigError, ManifestError
from ocf.objects import Manifest
from ocf.objects.manifest import split_api_version
from ocf.objects.paths import get_field
from ocf.objects.selectors import LabelSelector
from ocf.objects.timestamps import parse_time
from ocf.schema.builtin import builtin_kinds, builtin_resource, is_builtin_group
from ocf.schema.rest_mapping import guessed_mapping

if TYPE_CHECKING:
    from ocf.cli.explain.snapshot_file import SnapshotFile

__all__ = ["SnapshotInput", "read_input"]

_HPA: Final = "HorizontalPodAutoscaler"
_OWN: Final = "HorizontalAutoscaler"
_SNAPSHOT: Final = "Snapshot"
_WORKLOADS: Final = ("Deployment", "StatefulSet", "ReplicaSet", "ReplicationController")


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotInput:
    """The input of an explanation, from files.

    Args:
        history: The history; None if the files have none.
        own_settings: The settings of a HorizontalAutoscaler; None if it has none.
        created: When the autoscaler was created; None if the files do not say it.
        scaled_up: Whether its last rescale added replicas, by its events; None if the files do not say it.
        surroundings: What surrounds the autoscaler; None if the files have nothing about it.
    """

    snapshot: Snapshot
    history: History | None
    now: datetime
    notes: tuple[str, ...] = ()
    own_settings: Mapping[str, Any] | None = None
    created: datetime | None = None
    scaled_up: bool | None = None
    surroundings: Surroundings | None = None


class _Found(NamedTuple):
    """An object, and its location."""

    manifest: Manifest
    location: str


@dataclass(slots=True)
class _Files:
    """The objects of all files, by kind."""

    by_kind: dict[str, list[_Found]] = field(default_factory=dict)
    snapshot: SnapshotFile | None = None
    notes: list[str] = field(default_factory=list)
    recorded_at: datetime | None = None

    def add(self, objects: Iterable[Manifest], location: str) -> None:
        for each in objects:
            meant = kind_problem(each)
            if meant is not None:
                raise ManifestError("object", [meant])
            check(each)
            self.by_kind.setdefault(str(each.get("kind") or ""), []).append(_Found(each, location))

    def of(self, kind: str, namespace: str | None = None) -> list[Manifest]:
        return [each.manifest for each in self.found(kind, namespace)]

    def found(self, kind: str, namespace: str | None = None) -> list[_Found]:
        found = self.by_kind.get(kind, [])
        return [each for each in found if namespace is None or _namespace(each.manifest) in {namespace, None}]


def read_input(paths: Sequence[str], name: str | None, *, gates: FeatureGates, now: datetime | None) -> SnapshotInput:
    """Read the snapshot of an autoscaler from files.

    Args:
        paths: Files, folders, or `-` for the standard input.
        name: Name of the HPA, `web` or `shop/web`; None if there is only one.
        now: The instant of the sync; None takes it from the files.
    """
    files = _read(paths, now)
    chosen = _choose(files, name)
    hpa = _valid_hpa(chosen, gates, files.notes)
    autoscaler = Autoscaler.of(hpa)
    now = now or _instant(files)
    missing = _missing_target(files, autoscaler)
    scale, pods = ({}, []) if missing else _workload(files, autoscaler, now)
    snapshot = Snapshot.of(hpa, scale=scale, pods=pods, others=dict(_others(files, autoscaler, gates)))
    metric_values = _metric_values(files, snapshot, now)
    snapshot = Snapshot(
        autoscaler=snapshot.autoscaler,
        status=snapshot.status,
        scale=Unavailable(missing) if missing else snapshot.scale,
        pods=snapshot.pods,
        metric_values=metric_values,
        others=snapshot.others,
    )
    history = None if files.snapshot is None else files.snapshot.history
    events = _events(files, chosen.manifest)
    return SnapshotInput(
        snapshot=snapshot,
        history=None if history is None else history.to_history(now),
        now=now,
        notes=tuple(files.notes),
        own_settings=get_field(chosen.manifest, ("spec", "settings")) if chosen.manifest["kind"] == _OWN else None,
        created=creation_time(hpa),
        scaled_up=scaled_up(rescale_events(events), snapshot.status.last_scale_time),
        surroundings=_surroundings(files, chosen.manifest, autoscaler, events),
    )


def _events(files: _Files, autoscaler: Manifest) -> tuple[Manifest, ...]:
    return read_events(events_about(files.of("Event"), autoscaler, _namespace(autoscaler) or "default"))


def _surroundings(
    files: _Files, hpa: Manifest, autoscaler: Autoscaler, events: Sequence[Manifest]
) -> Surroundings | None:
    """Return what surrounds the autoscaler; None if the files only have what a sync reads."""
    namespace = autoscaler.namespace
    found = surroundings_of(
        hpa,
        _target(files, autoscaler),
        scalers=[each for kind in (_HPA, _OWN, SCALED_OBJECT[1]) for each in files.of(kind, namespace)],
        verticals=files.of(VERTICAL[1], namespace),
        replica_sets=files.of("ReplicaSet", namespace),
        events=events,
    )
    return None if found == Surroundings() else found


def _read(paths: Sequence[str], now: datetime | None) -> _Files:
    files, others = _Files(), []
    for path in paths:
        recorded = recorded_objects(path, now)
        if recorded is None:
            others.append(path)
            continue
        files.recorded_at = recorded.at
        with _locating_errors(recorded.location):
            files.add(recorded.objects, recorded.location)
    for document in read_documents(others):
        manifest, location = document.manifest, _location(document)
        if manifest is None:
            raise ConfigError(f"{location}: {document.problem}")
        if manifest.get("kind") == _SNAPSHOT:
            files.snapshot = _snapshot_file(document, files.snapshot)
            continue
        files.notes += (f"{document.file}: {warning}" for warning in document.warnings)
        with _locating_errors(location):
            files.add(entries(manifest), location)
    return files


def _location(document: Document) -> str:
    return f"{document.file}: document {document.number}" if document.number else document.file


@contextmanager
def _locating_errors(location: str) -> Iterator[None]:
    """Add the location to errors."""
    try:
        yield
    except ManifestError as error:
        raise ConfigError(f"{location}: {error}") from error


def _snapshot_file(document: Document, before: SnapshotFile | None) -> SnapshotFile:
    from ocf.cli.explain.snapshot_file import read_snapshot

    if before is not None:
        raise ConfigError(f"{_location(document)}: several Snapshots; give only one")
    return read_snapshot(document)


def _choose(files: _Files, name: str | None) -> _Found:
    found = [*files.found(_OWN), *files.found(_HPA)]
    wanted = [each for each in found if name is None or name in {_full(each.manifest), _name(each.manifest)}]
    if len(wanted) == 1:
        return wanted[0]
    known = ", ".join(_full(each.manifest) for each in found) or "none"
    if not wanted:
        raise ConfigError(f"the files hold no {_HPA} {name or ''}".rstrip() + f"; found: {known}")
    raise ConfigError(f"the files hold several autoscalers; name one of: {known}")


def _valid_hpa(found: _Found, gates: FeatureGates, notes: list[str]) -> Manifest:
    """Return the HPA as autoscaling/v2; reject one that the API server would reject."""
    hpa = _hpa(found, gates, notes)
    problems = validate({name: part for name, part in hpa.items() if name != "status"}, gates=gates)
    if problems:
        raise ConfigError(
            f"{found.location}: the API server would reject {_full(hpa)}: {problems[0].path}: {problems[0].message};"
            " `ocf validate` shows all problems"
        )
    return hpa


def _hpa(found: _Found, gates: FeatureGates, notes: list[str] | None = None) -> Manifest:
    """Return an autoscaler as autoscaling/v2; without a namespace it gets the default one."""
    manifest = found.manifest
    if manifest["kind"] == _OWN:
        from ocf.controllers.hpa.parsed_autoscaler import to_autoscaling_v2

        manifest = to_autoscaling_v2(manifest)
    with _locating_errors(found.location):
        read = read_hpa(manifest, gates=gates)
    removed = not_served(manifest.get("apiVersion"))
    if removed and notes is not None:
        notes.append(f"{found.location}: {manifest['apiVersion']} is {removed}; it is explained as autoscaling/v2")
    status = {"status": manifest["status"]} if "status" in manifest else {}
    return {**read, "metadata": {"namespace": "default", **(read.get("metadata") or {})}, **status}


def _instant(files: _Files) -> datetime:
    if files.snapshot is not None and files.snapshot.now is not None:
        return files.snapshot.now.astimezone(UTC)
    if files.recorded_at is not None:
        return files.recorded_at
    times = [each["timestamp"] for kind in MEASUREMENTS for each in files.of(kind) if each.get("timestamp")]
    if times:
        return max(map(parse_time, times))
    return datetime.now(UTC)


def _workload(files: _Files, autoscaler: Autoscaler, now: datetime) -> tuple[Manifest, list[Manifest]]:
    """Return the Scale of the target, and the pods."""
    target = _target(files, autoscaler)
    labels = _labels(target) or {"app": autoscaler.target or "app"}
    written = files.snapshot
    pods = files.of("Pod", autoscaler.namespace)
    selector = _selector(target, labels)
    if written is not None:
        selector = written.selector or selector
        pods += list(written.manifests(autoscaler.target or "pod", autoscaler.namespace, labels, now))
    scale = _scale(files, autoscaler, target, pods, selector)
    if not pods and target is not None and (written is None or written.pods is None):
        pods = list(_from_template(target, scale["spec"]["replicas"], autoscaler, now))
        files.notes.append(
            f"the files hold no Pod: assuming {len(pods)} from the template of {autoscaler.kind} {autoscaler.target},"
            " running and ready for an hour"
        )
    return scale, pods


def _missing_target(files: _Files, autoscaler: Autoscaler) -> str:
    """Return the controller's error for a target that the API server does not have; empty if it may have one.

    A kind that no API server has is missing always. An object is missing if the files have workloads of the namespace,
    but neither it nor anything that stands for it.
    """
    group, kind = split_api_version(autoscaler.api_version)[0], autoscaler.kind
    if any(_name(each) == autoscaler.target for each in files.of("Scale", autoscaler.namespace)):
        return ""
    plurals = [
        found.plural
        for name, version, each in builtin_kinds(group)
        if each == kind and (found := builtin_resource(name, version, each)) is not None
    ]
    if not plurals and (is_builtin_group(group) or "." not in group):
        return f'no matches for kind "{kind}" in group "{group}"'
    written = files.snapshot
    is_described = written is not None and (written.replicas is not None or written.pods is not None)
    if is_described or files.of("Pod", autoscaler.namespace) or _target(files, autoscaler) is not None:
        return ""
    kinds = {kind} if not plurals else {kind, *_WORKLOADS}
    if not any(files.of(each, autoscaler.namespace) for each in kinds):
        return ""
    plural = plurals[0] if plurals else guessed_mapping(autoscaler.api_version, kind).plural
    return f'{plural}{"." if group else ""}{group} "{autoscaler.target}" not found'


def _target(files: _Files, autoscaler: Autoscaler) -> Manifest | None:
    for each, location in files.found(autoscaler.kind, autoscaler.namespace):
        group = split_api_version(str(each.get("apiVersion") or ""))[0]
        if _name(each) == autoscaler.target and group == split_api_version(autoscaler.api_version)[0]:
            with _locating_errors(location):
                check_target(each)
                _selected(each)
            return each
    return None


def _selected(target: Manifest) -> LabelSelector | None:
    """Return the label selector of a workload, if it has one."""
    written = get_field(target, ("spec", "selector"))
    if not written:
        return None
    return LabelSelector.of({"matchLabels": written} if target.get("kind") == "ReplicationController" else written)


def _labels(target: Manifest | None) -> Mapping[str, str]:
    """Return the labels of the pods of a workload."""
    template: Mapping[str, str] = get_field(target or {}, ("spec", "template", "metadata", "labels")) or {}
    return template or get_field(target or {}, ("spec", "selector", "matchLabels")) or {}


def _selector(target: Manifest | None, labels: Mapping[str, str]) -> str:
    selected = None if target is None else _selected(target)
    return ",".join(f"{key}={value}" for key, value in labels.items()) if selected is None else str(selected)


def _scale(
    files: _Files, autoscaler: Autoscaler, target: Manifest | None, pods: Sequence[Manifest], selector: str
) -> Manifest:
    for each in files.of("Scale", autoscaler.namespace):
        if _name(each) == autoscaler.target:
            return {"spec": {"replicas": 0}, **each}
    written = files.snapshot
    replicas = written.replicas if written is not None else None
    observed = written.observed_replicas if written is not None else None
    if replicas is None and target is not None:
        replicas = (target.get("spec") or {}).get("replicas", 1)
        observed = observed if observed is not None else (target.get("status") or {}).get("replicas")
    if replicas is None and pods:
        replicas = len(pods)
    if replicas is None:
        raise ConfigError(
            f"the files do not say how many replicas {autoscaler.reference} has: add its manifest, its Scale, its"
            " pods, or a Snapshot with `replicas`"
        )
    status = {"replicas": replicas if observed is None else observed, "selector": selector}
    return {"spec": {"replicas": replicas}, "status": status}


def _from_template(target: Manifest, count: int, autoscaler: Autoscaler, now: datetime) -> Iterator[Manifest]:
    from ocf.cli.explain.snapshot_file import ready_since

    template = get_field(target, ("spec", "template")) or {}
    labels = get_field(template, ("metadata", "labels")) or {}
    for number in range(count):
        metadata = {"name": f"{autoscaler.target}-{number}", "namespace": autoscaler.namespace, "labels": labels}
        yield {"metadata": metadata, "spec": template.get("spec") or {}, "status": ready_since(now)}


def _others(files: _Files, autoscaler: Autoscaler, gates: FeatureGates) -> Iterator[tuple[str, LabelSelector]]:
    """Yield the selectors of the other autoscalers of the namespace whose targets are in the files."""
    for each in files.found(_HPA, autoscaler.namespace):
        other = Autoscaler.of(_hpa(each, gates))
        target = _target(files, other) if other.name != autoscaler.name else None
        selected = None if target is None else _selected(target)
        if selected is not None:
            yield other.name, selected


def _metric_values(files: _Files, snapshot: Snapshot, now: datetime) -> tuple[MetricValues, ...]:
    pods = [pod.name for pod in snapshot.pods]

    def entries(kind: str) -> list[Manifest]:
        return files.of(kind, snapshot.autoscaler.namespace)

    found = []
    for metric in snapshot.autoscaler.metrics:
        values = None if files.snapshot is None else files.snapshot.values(metric, pods, now)
        found.append(read_metric(metric, entries, set(pods)) if values is None else values)
    samples = () if files.snapshot is None else files.snapshot.metrics
    if samples or entries("MetricValue") or entries("ExternalMetricValue"):
        from ocf.cli.explain.unused_readings import unused_readings

        files.notes += unused_readings(snapshot.autoscaler, samples, entries)
    return tuple(found)


def _namespace(manifest: Manifest) -> str | None:
    metadata = manifest.get("metadata") or manifest.get("describedObject") or {}
    found = metadata.get("namespace")
    return None if found is None else str(found)


def _full(hpa: Manifest) -> str:
    return f"{_namespace(hpa) or 'default'}/{_name(hpa)}"


def _name(manifest: Manifest) -> str:
    return str((manifest.get("metadata") or {}).get("name") or "")
