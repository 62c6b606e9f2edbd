"""Manifests and object keys.

All packages except the editors represent an object as a plain `dict` in API spelling, so fields of a newer API server
are preserved and fields that were not declared are absent. `Manifest` is the type alias for it.
"""

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, TypeAlias

from ocf.errors import FieldProblem, ManifestError

__all__ = ["PREFIX", "SERVER_METADATA", "Manifest", "ObjectKey", "copy_json", "split_api_version", "version_order"]

Manifest: TypeAlias = dict[str, Any]
"""An object in API spelling: JSON values only (dict, list, str, int, float, bool, None)."""

PREFIX: Final = "ocf.dev"
"""Prefix of all annotations, labels, API groups and finalizers of this project."""

SERVER_METADATA: Final = frozenset(
    {
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generation",
        "managedFields",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)
"""Metadata fields that only the API server sets; it rejects most of them in a request."""

_KEY_FIELDS: Final = ("apiVersion", "kind", "metadata.name", "metadata.namespace")


class ObjectKey(NamedTuple):
    """Key of an object in a cluster.

    Args:
        api_version: Group and version, `apps/v1`; only the version for the core group, `v1`.
        kind: Kind, `Deployment`.
        name: Name of the object.
        namespace: Namespace; empty for a cluster-scoped object.

    Example:
        >>> str(ObjectKey("apps/v1", "Deployment", "backend", "shop"))
        'apps/v1/Deployment/shop/backend'
        >>> str(ObjectKey("rbac.authorization.k8s.io/v1", "ClusterRole", "viewer"))
        'rbac.authorization.k8s.io/v1/ClusterRole/viewer'
    """

    api_version: str
    kind: str
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.api_version}/{self.kind}/{place}"

    @classmethod
    def of(cls, manifest: Manifest) -> "ObjectKey":
        """Return the key of an object.

        Args:
            manifest: An object with `apiVersion`, `kind` and `metadata.name`.

        Raises:
            ManifestError: If one of these is missing, empty, or not a string.
        """
        metadata = manifest.get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        key = cls(
            manifest.get("apiVersion"),  # type: ignore[arg-type]  # checked below
            manifest.get("kind"),  # type: ignore[arg-type]  # likewise
            metadata.get("name"),  # type: ignore[arg-type]  # likewise
            metadata.get("namespace") or "",
        )
        # Keys are made many times per reconcile, and nearly all are valid.
        is_text = (
            key.api_version.__class__ is key.kind.__class__ is key.name.__class__ is key.namespace.__class__ is str
        )
        if is_text and key.api_version and key.kind and key.name:
            return key
        wrong = list(key._problems())
        if wrong:
            raise ManifestError(f"{key.kind or 'object'} {key.name or ''}".strip(), wrong)
        return key

    @property
    def group(self) -> str:
        """API group; empty for the core group."""
        return split_api_version(self.api_version)[0]

    @property
    def group_kind(self) -> tuple[str, str]:
        """API group and kind."""
        return self.group, self.kind

    @property
    def unversioned(self) -> tuple[str, str, str, str]:
        """Group, kind, namespace and name: equal for every version in which the API serves the object."""
        return self.group, self.kind, self.namespace, self.name

    def same_object(self, other: "ObjectKey") -> bool:
        """Return whether two keys name the same object, perhaps in two versions of the API.

        Args:
            other: Another key.

        Example:
            >>> new, old = ObjectKey("apps/v1", "Deployment", "web"), ObjectKey("apps/v1beta1", "Deployment", "web")
            >>> new.same_object(old), new == old
            (True, False)
        """
        return self.unversioned == other.unversioned

    def _problems(self) -> Iterator[FieldProblem]:
        values = (self.api_version, self.kind, self.name, self.namespace)
        for path, value in zip(_KEY_FIELDS, values, strict=True):
            if not isinstance(value, str):
                yield FieldProblem(path, "required value" if value is None else f"must be a text, not {value!r}")
            elif not value and path != "metadata.namespace":
                yield FieldProblem(path, "required value")


def split_api_version(api_version: str) -> tuple[str, str]:
    """Split an `apiVersion` into group and version.

    Args:
        api_version: `apps/v1`, or `v1` for the core group.

    Returns:
        Group (empty for the core group) and version.

    Example:
        >>> split_api_version("autoscaling/v2"), split_api_version("v1")
        (('autoscaling', 'v2'), ('', 'v1'))
    """
    group, _, version = api_version.rpartition("/")
    return group, version


_VERSION: Final = re.compile(r"v([0-9]+)(?:(alpha|beta)([0-9]+))?")
_STAGES: Final = {None: 2, "beta": 1, "alpha": 0}


def version_order(version: str) -> tuple[int, int, int, str]:
    """Return the key by which Kubernetes sorts the versions of a group, the preferred one first.

    Stable versions come before beta and alpha ones, each from the highest to the lowest; other names follow by
    alphabet. See https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/.

    Args:
        version: The version, without the group.

    Example:
        >>> sorted(["foo1", "v1", "v3beta1", "v12alpha1", "v10"], key=version_order)
        ['v10', 'v1', 'v3beta1', 'v12alpha1', 'foo1']
    """
    match = _VERSION.fullmatch(version)
    if match is None:
        return (1, 0, 0, version)
    return (-_STAGES[match[2]], -int(match[1]), -int(match[3] or 0), "")


def copy_json(value: Any) -> Any:
    """Return a deep copy of a JSON value, several times faster than `copy.deepcopy`.

    Args:
        value: A manifest or any part of one; it must not contain itself.

    Returns:
        An equal value that shares no dicts and lists with the argument.
    """
    # Most values are scalars; a call for each of them would take half of the time.
    if isinstance(value, dict):
        return {key: item if item.__class__ in _SCALARS else copy_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [item if item.__class__ in _SCALARS else copy_json(item) for item in value]
    return value


_SCALARS: Final = frozenset({str, int, float, bool, type(None)})
