"""What a round sees, gathered from files: the HPA, its target, pods, and answers of the metrics APIs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ocf.autoscaling import FeatureGates, validate
from ocf.autoscaling.algorithm import (
    Autoscaler,
    History,
    MetricValues,
    Snapshot,
)
from ocf.autoscaling.api.versions import read_hpa
from ocf.cli.explain.input_validation import check, check_target, entries
from ocf.cli.explain.metric_files import MEASUREMENTS, measured
from ocf.cli.manifest_files import Document, read_documents
from ocf.errors import ConfigError, ManifestError
from ocf.objects import LabelSelector, Manifest, get_field, split_api_version
from ocf.objects.timestamps import parse_time

if TYPE_CHECKING:
    from ocf.cli.explain.snapshot_file import SnapshotFile

__all__ = ["Given", "read_given"]

_HPA: Final = "HorizontalPodAutoscaler"
_OWN: Final = "HorizontalAutoscaler"


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What the files say.

    Args:
        snapshot: What the round sees.
        history: What it remembers; None where the files do not say.
        now: When it takes place.
        notes: What was filled in.
        own_settings: What an autoscaler of our own kind says about the settings; None where it says nothing.
    """

    snapshot: Snapshot
    history: History | None
    now: datetime
    notes: tuple[str, ...] = ()
    own_settings: Mapping[str, Any] | None = None


class _Found(NamedTuple):
    """An object, and where it stands."""

    manifest: Manifest
    place: str


@dataclass(slots=True)
class _Files:
    """The objects of all files, by kind."""

    by_kind: dict[str, list[_Found]] = field(default_factory=dict)
    situation: SnapshotFile | None = None
    notes: list[str] = field(default_factory=list)

    def of(self, kind: str, namespace: str | None = None) -> list[Manifest]:
        return [each.manifest for each in self.found(kind, namespace)]

    def found(self, kind: str, namespace: str | None = None) -> list[_Found]:
        found = self.by_kind.get(kind, [])
        return [each for each in found if namespace is None or _namespace(each.manifest) in {namespace, None}]


def read_given(paths: Sequence[str], name: str | None, *, gates: FeatureGates, now: datetime | None) -> Given:
    """Read what a round sees from files.

    Args:
        paths: Files, folders, `-` for the standard input.
        name: Which HPA is meant, `web` or `shop/web`; None if there is one only.
        gates: The feature gates of the server, for what it would refuse.
        now: When the round takes place; None takes it from the files.

    Returns:
        What it sees and remembers.

    Raises:
        ConfigError: If a file cannot be read, or does not say what is needed; with what to add.
    """
    files = _read(paths)
    chosen = _chosen(files, name)
    hpa = _checked(chosen, gates)
    autoscaler = Autoscaler.of(hpa)
    now = now or _instant(files)
    scale, pods = _workload(files, autoscaler, now)
    snapshot = Snapshot.of(hpa, scale=scale, pods=pods, others=dict(_others(files, autoscaler, gates)))
    readings = _readings(files, snapshot, now)
    snapshot = Snapshot(
        autoscaler=snapshot.autoscaler,
        status=snapshot.status,
        scale=snapshot.scale,
        pods=snapshot.pods,
        metric_values=readings,
        others=snapshot.others,
    )
    told = None if files.situation is None else files.situation.history
    return Given(
        snapshot=snapshot,
        history=None if told is None else told.history(now),
        now=now,
        notes=tuple(files.notes),
        own_settings=get_field(chosen.manifest, ("spec", "settings")) if chosen.manifest["kind"] == _OWN else None,
    )


def _read(paths: Sequence[str]) -> _Files:
    files = _Files()
    for document in read_documents(paths):
        manifest, place = document.manifest, _place(document)
        if manifest is None:
            raise ConfigError(f"{place}: {document.problem}")
        if manifest.get("kind") == "Situation":
            files.situation = _situation(document, files.situation)
            continue
        with _standing(place):
            for each in entries(manifest):
                check(each)
                files.by_kind.setdefault(str(each.get("kind") or ""), []).append(_Found(each, place))
    return files


def _place(document: Document) -> str:
    return f"{document.file}: document {document.number}" if document.number else document.file


@contextmanager
def _standing(place: str) -> Iterator[None]:
    """Say of whatever is wrong where it stands."""
    try:
        yield
    except ManifestError as error:
        raise ConfigError(f"{place}: {error}") from error


def _situation(document: Document, before: SnapshotFile | None) -> SnapshotFile:
    from ocf.cli.explain.snapshot_file import read_snapshot

    if before is not None:
        raise ConfigError(f"{_place(document)}: there is another Situation; give one")
    return read_snapshot(document)


def _chosen(files: _Files, name: str | None) -> _Found:
    found = [*files.found(_OWN), *files.found(_HPA)]
    wanted = [each for each in found if name is None or name in {_full(each.manifest), _name(each.manifest)}]
    if len(wanted) == 1:
        return wanted[0]
    known = ", ".join(_full(each.manifest) for each in found) or "none"
    if not wanted:
        raise ConfigError(f"the files hold no {_HPA} {name or ''}".rstrip() + f"; there are: {known}")
    raise ConfigError(f"the files hold several autoscalers; name one of: {known}")


def _checked(found: _Found, gates: FeatureGates) -> Manifest:
    """Return the HPA as autoscaling/v2, unless the API server would refuse it."""
    hpa = _hpa(found, gates)
    problems = validate({name: part for name, part in hpa.items() if name != "status"}, gates=gates)
    if problems:
        raise ConfigError(
            f"{found.place}: the API server would refuse {_full(hpa)}: {problems[0].path}: {problems[0].message};"
            " `ocf validate` says everything about it"
        )
    return hpa


def _hpa(found: _Found, gates: FeatureGates) -> Manifest:
    """Return an autoscaler as autoscaling/v2, in the namespace that it lands in where it names none."""
    manifest = found.manifest
    if manifest["kind"] == _OWN:
        from ocf.controllers.hpa.parsed_autoscaler import to_autoscaling_v2

        manifest = to_autoscaling_v2(manifest)
    with _standing(found.place):
        read = read_hpa(manifest, gates=gates)
    status = {"status": manifest["status"]} if "status" in manifest else {}
    return {**read, "metadata": {"namespace": "default", **(read.get("metadata") or {})}, **status}


def _instant(files: _Files) -> datetime:
    if files.situation is not None and files.situation.now is not None:
        return files.situation.now.astimezone(UTC)
    times = [each["timestamp"] for kind in MEASUREMENTS for each in files.of(kind) if each.get("timestamp")]
    if times:
        return max(map(parse_time, times))
    return datetime.now(UTC)


def _workload(files: _Files, autoscaler: Autoscaler, now: datetime) -> tuple[Manifest, list[Manifest]]:
    """Return the Scale of the target, and the pods that there are."""
    target = _target(files, autoscaler)
    labels = _labels(target) or {"app": autoscaler.target or "app"}
    situation = files.situation
    pods = files.of("Pod", autoscaler.namespace)
    selector = _selector(target, labels)
    if situation is not None:
        selector = situation.selector or selector
        pods += list(situation.manifests(autoscaler.target or "pod", autoscaler.namespace, labels, now))
    scale = _scale(files, autoscaler, target, pods, selector)
    if not pods and target is not None and (situation is None or situation.pods is None):
        pods = list(_from_template(target, scale["spec"]["replicas"], autoscaler, now))
        files.notes.append(
            f"no Pod is given, so there are {len(pods)} of them, as {autoscaler.kind} {autoscaler.target} makes them,"
            " running and ready for an hour"
        )
    return scale, pods


def _target(files: _Files, autoscaler: Autoscaler) -> Manifest | None:
    for each, place in files.found(autoscaler.kind, autoscaler.namespace):
        group = split_api_version(str(each.get("apiVersion") or ""))[0]
        if _name(each) == autoscaler.target and group == split_api_version(autoscaler.api_version)[0]:
            with _standing(place):
                check_target(each)
                _selected(each)
            return each
    return None


def _selected(target: Manifest) -> LabelSelector | None:
    """Return which pods are those of a workload; None where it does not say."""
    written = get_field(target, ("spec", "selector"))
    if not written:
        return None
    return LabelSelector.of({"matchLabels": written} if target.get("kind") == "ReplicationController" else written)


def _labels(target: Manifest | None) -> Mapping[str, str]:
    """Return labels of the pods of a workload."""
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
    situation = files.situation
    replicas = situation.replicas if situation is not None else None
    observed = situation.observed_replicas if situation is not None else None
    if replicas is None and target is not None:
        replicas = (target.get("spec") or {}).get("replicas", 1)
        observed = observed if observed is not None else (target.get("status") or {}).get("replicas")
    if replicas is None and pods:
        replicas = len(pods)
    if replicas is None:
        raise ConfigError(
            f"the files do not say how many replicas {autoscaler.reference} has: add its manifest, its Scale, its"
            " pods, or a Situation with `replicas`"
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
    """Yield the selectors of the other autoscalers of the namespace, as far as their targets are in the files."""
    for each in files.found(_HPA, autoscaler.namespace):
        other = Autoscaler.of(_hpa(each, gates))
        target = _target(files, other) if other.name != autoscaler.name else None
        selected = None if target is None else _selected(target)
        if selected is not None:
            yield other.name, selected


def _readings(files: _Files, snapshot: Snapshot, now: datetime) -> tuple[MetricValues, ...]:
    pods = [pod.name for pod in snapshot.pods]

    def entries(kind: str) -> list[Manifest]:
        return files.of(kind, snapshot.autoscaler.namespace)

    found = []
    for metric in snapshot.autoscaler.metrics:
        told = None if files.situation is None else files.situation.reading(metric, pods, now)
        found.append(measured(metric, entries, set(pods)) if told is None else told)
    return tuple(found)


def _namespace(manifest: Manifest) -> str | None:
    metadata = manifest.get("metadata") or manifest.get("describedObject") or {}
    found = metadata.get("namespace")
    return None if found is None else str(found)


def _full(hpa: Manifest) -> str:
    return f"{_namespace(hpa) or 'default'}/{_name(hpa)}"


def _name(manifest: Manifest) -> str:
    return str((manifest.get("metadata") or {}).get("name") or "")
