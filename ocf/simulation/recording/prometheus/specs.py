"""The HPA of a range of time, from its series and, for what they do not have, from a manifest."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ocf.errors import ConfigError
from ocf.objects import Manifest, copy_json
from ocf.objects.paths import get_field
from ocf.simulation.recording.prometheus.matrix import Matrix
from ocf.simulation.recording.prometheus.queries import Need, SeriesSelection, SeriesSource

__all__ = ["RangeSpec", "missing_series"]

_RESOURCES: Final = ("cpu", "memory")
_FIELDS: Final = {"utilization": "averageUtilization", "average": "averageValue", "value": "value"}
_TYPES: Final = {"utilization": "Utilization", "average": "AverageValue", "value": "Value"}
_NOTHING: Final = Matrix()


def missing_series(sources: Iterable[SeriesSource], seen: Collection[str], need: Need) -> list[str]:
    """Return a text for each kind of series that was never seen: its names, and what to do.

    Args:
        sources: The kinds of series.
        seen: The keys of those that were seen.
        need: Only series with this need.
    """
    missing = (each for each in sources if each.need is need and each.key not in seen)
    return [f"{' or '.join(each.names)}: {each.remedy}" for each in missing]


@dataclass(frozen=True, slots=True)
class RangeSpec:
    """An HPA over a range of time.

    Args:
        selection: The HPA.
        series: Its series by key of the source.
        manifest: A manifest of it, for its behavior and the sources of its metrics; None for what the series have.
    """

    selection: SeriesSelection
    series: Mapping[str, Matrix]
    manifest: Manifest | None = None

    def target(self) -> Mapping[str, str]:
        """Return `scaleTargetRef`.

        Raises:
            ConfigError: If neither a manifest nor a series has it.
        """
        if self.manifest is not None:
            found: Mapping[str, str] = get_field(self.manifest, ("spec", "scaleTargetRef")) or {}
            return found
        for each in reversed(self._matrix("info").series):
            return {
                "apiVersion": each.label("scaletargetref_api_version") or "apps/v1",
                "kind": each.label("scaletargetref_kind"),
                "name": each.label("scaletargetref_name"),
            }
        raise ConfigError(
            "the target of the HPA is not known: there is no series kube_horizontalpodautoscaler_info, which"
            " kube-state-metrics has from version 2 on; pass a manifest of the HPA with --manifest"
        )

    def at(self, number: int) -> Manifest | None:
        """Return the HPA at an instant; None if it was not scraped.

        Args:
            number: The number of the instant.

        Raises:
            ConfigError: If its metrics, or the type of one of them, are not known.
        """
        most = self._matrix("max").one(number)
        if most is None:
            return None
        least = self._matrix("min").one(number)
        spec: Manifest = copy_json(self.manifest["spec"]) if self.manifest is not None else {}
        spec["scaleTargetRef"] = dict(self.target())
        spec["maxReplicas"] = int(most)
        if least is not None:
            spec["minReplicas"] = int(least)
        targets = self._targets(number)
        if self.manifest is None:
            if not self._matrix("target").series:
                raise ConfigError(
                    "the metrics of the HPA are not known: there is no series"
                    " kube_horizontalpodautoscaler_spec_target_metric; pass a manifest of the HPA with --manifest"
                )
            spec["metrics"] = [_resource_metric(name, kind, value) for (name, kind), value in targets.items()]
        else:
            for metric in spec.get("metrics") or ():
                _set_target(metric, targets)
        return {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": self.selection.hpa, "namespace": self.selection.namespace},
            "spec": spec,
            "status": self._status(number),
        }

    def value(self, number: int, metric: str, kind: str) -> float | None:
        """Return the value of a metric in the status of the HPA.

        Args:
            number: The number of the instant.
            metric: Name of the metric.
            kind: `average` or `value`.
        """
        for each, value in self._matrix("value").at(number):
            if (each.label("metric_name"), each.label("metric_target_type")) == (metric, kind):
                return value
        return None

    def replicas(self, number: int) -> int:
        """Return the current replicas in the status of the HPA; 0 if they are not known.

        Args:
            number: The number of the instant.
        """
        return int(self._matrix("current").one(number) or 0)

    def _matrix(self, key: str) -> Matrix:
        return self.series.get(key, _NOTHING)

    def _targets(self, number: int) -> dict[tuple[str, str], float]:
        found = self._matrix("target").at(number)
        return {(each.label("metric_name"), each.label("metric_target_type")): value for each, value in found}

    def _status(self, number: int) -> Manifest:
        conditions = list(self._conditions(number))
        return {
            "currentReplicas": self.replicas(number),
            "desiredReplicas": int(self._matrix("desired").one(number) or 0),
            **({"conditions": conditions} if conditions else {}),
        }

    def _conditions(self, number: int) -> Iterator[Manifest]:
        for each, value in self._matrix("condition").at(number):
            kind, status = each.label("condition"), each.label("status")
            if kind in {"true", "false", "unknown"}:
                # Before version 2 of kube-state-metrics, the two labels were swapped.
                kind, status = status, kind
            if value == 1:
                yield {"type": kind, "status": status.capitalize()}


def _resource_metric(name: str, kind: str, value: float) -> Manifest:
    if name not in _RESOURCES and kind != "utilization":
        raise ConfigError(
            f"the type of the metric {name} is not known, because kube-state-metrics has only its name and its target:"
            " pass a manifest of the HPA with --manifest"
        )
    return {"type": "Resource", "resource": {"name": name, "target": _target(kind, value)}}


def _target(kind: str, value: float) -> Manifest:
    return {"type": _TYPES.get(kind, "AverageValue"), _FIELDS.get(kind, "averageValue"): _number(kind, value)}


def _number(kind: str, value: float) -> int | str:
    return round(value) if kind == "utilization" else f"{round(value * 1000)}m"


def _set_target(metric: Manifest, targets: Mapping[tuple[str, str], float]) -> None:
    """Set the target of a metric of a manifest to the one that the series have, if it is another one."""
    source: Any = next((part for part in metric.values() if isinstance(part, dict)), {})
    name = source.get("name") or get_field(source, ("metric", "name"))
    target = source.get("target") or {}
    for kind, spelled in _TYPES.items():
        value = targets.get((name, kind))
        if target.get("type") == spelled and value is not None:
            source["target"] = {"type": spelled, _FIELDS[kind]: _number(kind, value)}
