"""Parsed autoscalers: the manifest of an autoscaler, parsed once per change of its spec.

Parsing and validating a spec takes longer than the decision, and specs change rarely.
"""

from typing import Final, NamedTuple

from ocf.autoscaling import FeatureGates, validate
from ocf.autoscaling.algorithm import Autoscaler, Settings
from ocf.controllers.hpa.modes import BUILT_IN, OWN
from ocf.controllers.hpa.settings import override_settings
from ocf.errors import ConfigError
from ocf.objects import Manifest, ObjectKey

__all__ = ["ParsedAutoscaler", "parse_autoscaler", "to_autoscaling_v2"]

_SETTINGS: Final = "settings"


class ParsedAutoscaler(NamedTuple):
    """An autoscaler as the controller runs it.

    Args:
        target: Its target; fields that the spec does not have are empty.
        settings: Its settings: those of the controller with its own overrides.
        autoscaler: Its spec; None if the spec is invalid.
        problem: Why it cannot be run; empty if it can.
    """

    key: ObjectKey
    uid: str
    target: ObjectKey
    settings: Settings
    autoscaler: Autoscaler | None = None
    problem: str = ""


def to_autoscaling_v2(manifest: Manifest) -> Manifest:
    """Convert an autoscaler of our own kind to a HorizontalPodAutoscaler.

    Args:
        manifest: An autoscaler of either kind.

    Returns:
        A manifest of autoscaling/v2 that shares parts with `manifest`.
    """
    spec = {field: value for field, value in (manifest.get("spec") or {}).items() if field != _SETTINGS}
    api_version, kind = BUILT_IN
    return {**manifest, "apiVersion": api_version, "kind": kind, "spec": spec}


def parse_autoscaler(manifest: Manifest, settings: Settings) -> ParsedAutoscaler:
    """Parse an autoscaler.

    The API server checks an object of our own kind only against its schema, so it is validated here as the API server
    validates autoscaling/v2.

    Args:
        manifest: An autoscaler of either kind, as read from the cluster.
        settings: The settings of the controller.

    Returns:
        The parsed autoscaler; with a problem if it cannot be run.

    Example:
        >>> web = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        >>> spec = {"scaleTargetRef": web, "minReplicas": 3, "maxReplicas": 2}
        >>> parse_autoscaler({"apiVersion": OWN[0], "kind": OWN[1], "metadata": {"name": "web"}, "spec": spec}, Settings()).problem
        'spec.maxReplicas: Invalid value: 2: must be greater than or equal to `minReplicas`'
    """  # noqa: E501 (an example on one line)
    key, uid = ObjectKey.of(manifest), str(manifest["metadata"].get("uid") or "")
    target = _target(manifest)
    own = key.kind == OWN[1]
    try:
        plain = to_autoscaling_v2(manifest) if own else manifest
        if own:
            settings = override_settings(settings, manifest["spec"].get(_SETTINGS))
            problems = validate(_unmanaged(plain), gates=_gates(settings))
            if problems:
                return ParsedAutoscaler(key, uid, target, settings, problem="; ".join(map(str, problems)))
        return ParsedAutoscaler(key, uid, target, settings, Autoscaler.of(plain))
    except ConfigError as error:
        return ParsedAutoscaler(key, uid, target, settings, problem=str(error))


def _target(manifest: Manifest) -> ObjectKey:
    reference = (manifest.get("spec") or {}).get("scaleTargetRef") or {}
    api_version, kind, name = (str(reference.get(field) or "") for field in ("apiVersion", "kind", "name"))
    return ObjectKey(api_version, kind, name, str(manifest["metadata"].get("namespace") or ""))


def _unmanaged(manifest: Manifest) -> Manifest:
    """Strip the fields that the API server manages; validation must not see them."""
    metadata = {field: manifest["metadata"].get(field) for field in ("name", "namespace")}
    return {
        "apiVersion": manifest["apiVersion"],
        "kind": manifest["kind"],
        "metadata": metadata,
        "spec": manifest["spec"],
    }


def _gates(settings: Settings) -> FeatureGates:
    features = settings.features
    return FeatureGates(scale_to_zero=features.scale_to_zero, configurable_tolerance=features.configurable_tolerance)
