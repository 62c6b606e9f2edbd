"""Validation rules of references: of the scale target, and of the objects that Object metrics describe."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from ocf.objects import Manifest
from ocf.objects.field_errors import FieldError, invalid, required
from ocf.objects.name_validation import path_segment

__all__ = ["UNCHECKED", "VersionRule", "described_rule", "reference_errors", "target_rule"]


class VersionRule(NamedTuple):
    """The rule for the `apiVersion` of a reference.

    Args:
        checked: Whether it is validated; values stored before the rule existed may stay.
        core_allowed: Whether the core group is allowed, which has an empty name.
    """

    checked: bool = True
    core_allowed: bool = False

    def problem(self, api_version: str) -> str:
        """Return the error message for an `apiVersion`; empty if it is valid."""
        if not self.checked:
            return ""
        group, slash, version = api_version.partition("/")
        # Before the group is looked at, as schema.ParseGroupVersion does.
        if "/" in version:
            return f"unexpected GroupVersion string: {api_version}"
        if not self.core_allowed and not (slash and group):
            return "apiVersion must specify API group"
        return ""


UNCHECKED: Final = VersionRule(checked=False)
"""Accepts every value."""


def target_rule(target: Manifest, old: Manifest | None) -> VersionRule:
    """Return the rule for `spec.scaleTargetRef`.

    Args:
        old: The reference of the stored object; None for a creation.
    """
    if old is not None and all((old.get(each) or "") == (target.get(each) or "") for each in ("apiVersion", "kind")):
        return UNCHECKED
    # The only kind in the core group that can be scaled.
    return VersionRule(core_allowed=target.get("kind") == "ReplicationController")


def described_rule(old_metrics: Sequence[Manifest]) -> VersionRule:
    """Return the rule for the objects that Object metrics describe."""
    rule = VersionRule(core_allowed=True)
    for metric in old_metrics:
        source: Any = metric.get("object")
        if metric.get("type") == "Object" and source is not None:
            described = source.get("describedObject", {})
            # One invalid reference of a release that did not check permits others in the update (from 1.34), or the
            # object could never be changed again.
            if rule.problem(described.get("apiVersion", "")):
                return UNCHECKED
    return rule


def reference_errors(reference: Manifest, path: str, rule: VersionRule) -> Iterator[FieldError]:
    """Validate a reference.

    Args:
        rule: The rule for its `apiVersion`.
    """
    for field in ("kind", "name"):
        value = reference.get(field, "")
        if value:
            yield from (invalid(f"{path}.{field}", value, problem) for problem in path_segment(value))
        else:
            yield required(f"{path}.{field}")
    api_version = reference.get("apiVersion", "")
    problem = rule.problem(api_version)
    if problem:
        yield invalid(f"{path}.apiVersion", api_version, problem)
