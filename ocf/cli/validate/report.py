"""Validation report of one object of a file: errors of the API server, and findings of the linter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ocf.autoscaling import FeatureGates, validate
from ocf.autoscaling.api.kinds import HPA_KIND as KIND
from ocf.autoscaling.api.kinds import kind_problem
from ocf.errors import ConfigError, ManifestError

if TYPE_CHECKING:
    from ocf.autoscaling import Finding
    from ocf.cli.manifest_files import Document
    from ocf.cli.validate.neighbours import OtherObjects
    from ocf.cli.validate.places import Place
    from ocf.objects import Manifest

__all__ = [
    "KIND",
    "UNREADABLE",
    "ValidationError",
    "ValidationReport",
    "check",
    "check_scaled_object",
    "find_by_name",
    "gates_of",
    "name_of",
]

UNREADABLE: Final = "BadRequest"
"""The type of an error that the server detects while decoding, before validation."""

_GATES: Final = {"HPAScaleToZero": "scale_to_zero", "HPAConfigurableTolerance": "configurable_tolerance"}


class ValidationError(NamedTuple):
    """An error for which the API server would reject an object.

    Args:
        path: The field; empty for the object as a whole.
        type: The server's type, such as `FieldValueForbidden`; `BadRequest` if the object cannot be decoded.
    """

    path: str
    type: str
    detail: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class ValidationReport(NamedTuple):
    """The validation report of one object."""

    document: Document
    name: str
    errors: tuple[ValidationError, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def valid(self) -> bool:
        """Whether the server would accept the object."""
        return not self.errors

    def place(self, path: str) -> Place:
        """Return the line and the column of a field; they are found on demand, because most reports have no errors."""
        from ocf.cli.validate.places import find_place

        return find_place(self.document, path)

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        errors = [
            {"path": one.path, "type": one.type, "detail": one.detail, "message": one.message} for one in self.errors
        ]
        findings = [one.to_json() for one in self.findings]
        return {
            "file": self.document.file,
            "document": self.document.number,
            "name": self.name,
            "valid": self.valid,
            "errors": [{**one, **self.place(one["path"])._asdict()} for one in errors],
            "findings": [{**one, **self.place(one["path"])._asdict()} for one in findings],
        }


def gates_of(version: str | None, switches: Sequence[str]) -> FeatureGates:
    """Return the feature gates that the options select.

    Args:
        version: Kubernetes version; None for the newest whose rules are implemented.
    """
    gates = FeatureGates.for_release(version) if version else FeatureGates()
    chosen = {}
    for switch in switches:
        name, _, value = switch.partition("=")
        if name not in _GATES or value.lower() not in {"true", "false"}:
            known = ", ".join(_GATES)
            raise ConfigError(f'invalid feature gate "{switch}": write NAME=true or NAME=false, with one of {known}')
        chosen[_GATES[name]] = value.lower() == "true"
    return gates._replace(**chosen)


def name_of(manifest: Manifest) -> str:
    """Return the `namespace/name` of an object, as far as it has them."""
    metadata = _metadata(manifest)
    name = str(metadata.get("name") or metadata.get("generateName") or "?")
    return f"{metadata['namespace']}/{name}" if metadata.get("namespace") else name


def find_by_name(manifest: Manifest, others: Mapping[str, Manifest]) -> Manifest | None:
    """Return the object of the same name; a manifest without a namespace matches any namespace."""
    name = name_of(manifest)
    return others.get(name) or others.get(name.rpartition("/")[2])


def check(
    document: Document,
    *,
    gates: FeatureGates,
    old: Manifest | None = None,
    others: OtherObjects | None = None,
) -> ValidationReport:
    """Check one autoscaler.

    Args:
        document: The document; one that cannot be read has a report, too.
        others: The other objects, for the linter; None disables it.
    """
    manifest = document.manifest
    if manifest is None:
        return ValidationReport(document=document, name="?", errors=(_unreadable(document.problem),))
    name, meant = name_of(manifest), kind_problem(manifest)
    if meant is not None:
        return ValidationReport(document=document, name=name, errors=(_unreadable(meant.detail, meant.path),))
    try:
        errors = validate(manifest, old, gates=gates, any_version=True)
    except ManifestError as error:
        unreadable = tuple(_unreadable(problem.detail, problem.path) for problem in error.problems)
        return ValidationReport(document=document, name=name, errors=unreadable)
    found = tuple(ValidationError(error.path, str(error.type), error.detail, error.message) for error in errors)
    if others is None:
        return ValidationReport(document=document, name=name, errors=found)
    return ValidationReport(
        document=document, name=name, errors=found, findings=_lint_findings(manifest, others, gates)
    )


def check_scaled_object(document: Document, others: OtherObjects, gates: FeatureGates) -> ValidationReport:
    """Return the findings for the HPA that KEDA makes of a ScaledObject, with the errors of that HPA."""
    from ocf.autoscaling.linter.linter import lint_among
    from ocf.autoscaling.targets.scaled_objects import target_of

    manifest = document.manifest or {}
    target = others.candidates.find(target_of(manifest))
    findings = lint_among(manifest, target, others.cluster, gates)
    return ValidationReport(document=document, name=name_of(manifest), findings=findings)


def _lint_findings(manifest: Manifest, others: OtherObjects, gates: FeatureGates) -> tuple[Finding, ...]:
    from ocf.autoscaling.api.versions import read_hpa
    from ocf.autoscaling.linter.linter import lint_among
    from ocf.autoscaling.targets.targets import scale_target_key

    hpa = read_hpa(manifest, gates=gates)
    target = others.candidates.find(scale_target_key(hpa))
    return lint_among(hpa, target, others.cluster, gates)


def _metadata(manifest: Manifest) -> Manifest:
    metadata = manifest.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _unreadable(detail: str, path: str = "") -> ValidationError:
    return ValidationError(path, UNREADABLE, detail, detail)
