"""What is to be said about one object of a file: whether the API server would take it, and what production regrets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from ocf.autoscaling import FeatureGates, validate
from ocf.autoscaling.api.versions import read_hpa
from ocf.errors import ConfigError, ManifestError

if TYPE_CHECKING:
    from ocf.autoscaling import Finding
    from ocf.cli.manifest_files import Document
    from ocf.objects import Manifest

__all__ = ["KIND", "UNREADABLE", "ValidationError", "ValidationReport", "check", "find_by_name", "gates_of", "name_of"]

KIND: Final = "HorizontalPodAutoscaler"
UNREADABLE: Final = "BadRequest"
"""The type of a mistake that the server finds while it reads the object, before any rule is looked at."""

_GATES: Final = {"HPAScaleToZero": "scale_to_zero", "HPAConfigurableTolerance": "configurable_tolerance"}


@dataclass(frozen=True, slots=True)
class ValidationError:
    """One reason to refuse an object.

    Args:
        path: The field; empty for the object as a whole.
        type: The server's word for it, `FieldValueForbidden`; `BadRequest` where it cannot even be read.
        detail: What is wrong, or what is allowed.
        message: The same as the server puts it, `Forbidden: may not set both ...`.
    """

    path: str
    type: str
    detail: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationReport:
    """What is to be said about one object.

    Args:
        document: Where it stands.
        name: `namespace/name`, or what is known of it.
        mistakes: Why the server would refuse it.
        findings: What production regrets.
    """

    document: Document
    name: str
    errors: tuple[ValidationError, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def valid(self) -> bool:
        """Whether the server would take it."""
        return not self.errors

    def to_json(self) -> dict[str, Any]:
        """Return it for programs."""
        return {
            "file": self.document.file,
            "document": self.document.number,
            "name": self.name,
            "valid": self.valid,
            "errors": [
                {"path": one.path, "type": one.type, "detail": one.detail, "message": one.message}
                for one in self.errors
            ],
            "findings": [
                {
                    "code": str(one.code),
                    "severity": str(one.severity),
                    "path": one.path,
                    "explanation": one.explanation,
                    "mend": one.fix,
                }
                for one in self.findings
            ],
        }


def gates_of(version: str | None, switches: Sequence[str]) -> FeatureGates:
    """Read the options that describe a server.

    Args:
        version: Version of Kubernetes; None for the newest whose rules are those of the texts.
        switches: Feature gates, `HPAScaleToZero=true`.

    Raises:
        ConfigError: If the version or a feature is not known.
    """
    gates = FeatureGates.for_release(version) if version else FeatureGates()
    chosen = {}
    for switch in switches:
        name, _, value = switch.partition("=")
        if name not in _GATES or value.lower() not in {"true", "false"}:
            known = " and ".join(_GATES)
            raise ConfigError(f'"{switch}" is no feature gate: write NAME=true or NAME=false; there are {known}')
        chosen[_GATES[name]] = value.lower() == "true"
    return replace(gates, **chosen)


def name_of(manifest: Manifest) -> str:
    """Return what an object is called, as far as it says."""
    metadata = _metadata(manifest)
    name = str(metadata.get("name") or metadata.get("generateName") or "?")
    return f"{metadata['namespace']}/{name}" if metadata.get("namespace") else name


def find_by_name(manifest: Manifest, others: Mapping[str, Manifest]) -> Manifest | None:
    """Return the object of the same name; one that names no namespace fits any."""
    name = name_of(manifest)
    return others.get(name) or others.get(name.rpartition("/")[2])


def check(
    document: Document, *, gates: FeatureGates, old: Manifest | None = None, beside: Sequence[Manifest] | None = None
) -> ValidationReport:
    """Judge one autoscaler.

    Args:
        document: Where it stands; one that could not be read is a verdict, too.
        gates: The feature gates of the server.
        old: The stored object, for an update.
        beside: The other objects, for a lint; None leaves that out.
    """
    manifest = document.manifest
    if manifest is None:
        return ValidationReport(document=document, name="?", errors=(_unreadable(document.problem),))
    name = name_of(manifest)
    try:
        hpa = read_hpa(manifest, gates=gates)
        stored = None if old is None else read_hpa(old, gates=gates)
    except ManifestError as error:
        mistakes = tuple(_unreadable(problem.detail, problem.path) for problem in error.problems)
        return ValidationReport(document=document, name=name, errors=mistakes)
    found = tuple(
        ValidationError(error.path, str(error.type), error.detail, error.message)
        for error in validate(hpa, stored, gates=gates)
    )
    if found or beside is None:
        return ValidationReport(document=document, name=name, errors=found)
    return ValidationReport(document=document, name=name, findings=_lint_findings(hpa, manifest, beside, gates))


def _lint_findings(
    hpa: Manifest, manifest: Manifest, beside: Sequence[Manifest], gates: FeatureGates
) -> tuple[Finding, ...]:
    from ocf.autoscaling import lint
    from ocf.autoscaling.targets.targets import find_scale_target

    others = [one for one in beside if one is not manifest and one.get("apiVersion") != "autoscaling/v1"]
    try:
        return lint(hpa, find_scale_target(hpa, others), others, gates=gates)
    except ConfigError:
        # Something beside it cannot be read; that is told where it stands.
        return lint(hpa, gates=gates)


def _metadata(manifest: Manifest) -> Manifest:
    metadata = manifest.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _unreadable(detail: str, path: str = "") -> ValidationError:
    return ValidationError(path, UNREADABLE, detail, detail)
