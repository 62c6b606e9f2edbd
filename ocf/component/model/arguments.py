"""Check of the arguments with which a reconcile begins."""

from __future__ import annotations

from collections.abc import Sequence

from ocf.component.model.former_managers import pattern_problems
from ocf.errors import ConfigError
from ocf.objects.name_validation import dns_label

__all__ = ["require_arguments"]


def require_arguments(owner: object, cluster: object, operator: str, former_managers: Sequence[str]) -> None:
    """Raise an error that names each argument of a reconcile that cannot be right."""
    problems: list[str] = []
    if not isinstance(owner, dict):
        from pydantic import BaseModel

        if not isinstance(owner, BaseModel):
            found = "None" if owner is None else f"an object of type {type(owner).__name__}"
            problems.append(f"owner must be the manifest or a model of an object read from the cluster, got {found}")
    if not callable(getattr(cluster, "apply", None)):
        found = "None" if cluster is None else f"an object of type {type(cluster).__name__}"
        problems.append(f"cluster must be a Cluster, got {found}")
    problems += [f'operator "{operator}": {problem}' for problem in dns_label(operator)]
    problems += pattern_problems(former_managers)
    if problems:
        raise ConfigError(f"reconciling: {'; '.join(problems)}")
