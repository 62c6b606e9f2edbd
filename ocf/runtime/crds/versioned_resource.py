"""Several versions of one custom resource, and the conversion functions between neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from typing import Any, Generic, TypeVar

from ocf.errors import BuildError
from ocf.lazy_types.pydantic import BaseModel
from ocf.objects import Manifest
from ocf.objects.manifest import split_api_version
from ocf.runtime.crds.crd import CRDVersion, Scope, crd, kind_of, version_problems
from ocf.runtime.crds.resource_names import name_problems, resource_names

__all__ = ["Conversion", "VersionedResource"]

Older = TypeVar("Older", bound="BaseModel")
Newer = TypeVar("Newer", bound="BaseModel")


@dataclass(frozen=True)
class Conversion(Generic[Older, Newer]):
    """Conversion between two neighbouring versions, in both directions.

    The functions are pure: they get a model and return one. Metadata is carried over, so they need not copy it. They
    may drop what the other version cannot express, because `VersionedResource.convert` keeps it.

    Args:
        older: The model of the older version.
        newer: The model of the next version.
        up: Converts an object to the newer version.
        down: Converts an object to the older version.
    """

    older: type[Older]
    newer: type[Newer]
    up: Callable[[Older], Newer]
    down: Callable[[Newer], Older]


@dataclass(frozen=True)
class VersionedResource:
    """A custom resource with several versions.

    The versions form a chain. A conversion is declared between each version and the next one; an object is converted
    between other versions by all conversions on the way. Neighbours with the same model need none.

    Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/.

    Args:
        group: API group, `example.com`.
        versions: The versions, from the oldest to the newest; exactly one is `stored`.
        conversions: One for each pair of neighbours.
        kind: The kind; empty for the class name of the models, which then must be the same.
        plural: Plural name of the resource; empty derives it from the kind.
        short_names: Short names for `kubectl`.
        categories: Categories for `kubectl get`.
        scope: Scope of the kind.

    Raises:
        BuildError: If a conversion is missing, declared twice, or not between neighbours, if not exactly one version
            is stored, or if the API server would reject a name; it lists every problem.

    Example:
        >>> from pydantic import BaseModel
        >>> class OldQuota(BaseModel):
        ...     limit: int
        >>> class Quota(BaseModel):
        ...     maximum: int
        >>> quotas = VersionedResource(
        ...     "example.com",
        ...     [CRDVersion("v1", OldQuota), CRDVersion("v2", Quota, stored=True)],
        ...     [
        ...         Conversion(
        ...             OldQuota,
        ...             Quota,
        ...             up=lambda old: Quota(maximum=old.limit),
        ...             down=lambda new: OldQuota(limit=new.maximum),
        ...         )
        ...     ],
        ...     kind="Quota",
        ... )
        >>> old = {"apiVersion": "example.com/v1", "kind": "Quota", "metadata": {"name": "small"}, "limit": 2}
        >>> quotas.convert(old, "v2")
        {'apiVersion': 'example.com/v2', 'kind': 'Quota', 'metadata': {'name': 'small'}, 'maximum': 2}
    """

    group: str
    versions: Sequence[CRDVersion]
    conversions: Sequence[Conversion[Any, Any]] = ()
    kind: str = ""
    plural: str = ""
    short_names: Sequence[str] = ()
    categories: Sequence[str] = ()
    scope: Scope = Scope.NAMESPACED
    _chain: tuple[Conversion[Any, Any] | None, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        problems = [problem.detail for problem in version_problems(self.versions, self.kind)]
        problems += self._conversion_problems()
        kind = kind_of(self.versions, self.kind)
        problems += self._name_problems(kind)
        plural = resource_names(kind, self.plural)["plural"]
        if problems:
            raise BuildError([f"{plural}.{self.group}: {problem}" for problem in problems])
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "plural", plural)
        object.__setattr__(self, "_chain", tuple(next(iter(self._between(*pair)), None) for pair in self._pairs))

    @property
    def name(self) -> str:
        """Name of the resource, `shops.example.com`."""
        return f"{self.plural}.{self.group}"

    @property
    def stored(self) -> CRDVersion:
        """The storage version."""
        return next((version for version in self.versions if version.stored), self.versions[0])

    @property
    def has_conversions(self) -> bool:
        """Whether there are several versions, so that API servers call the conversion webhook."""
        return len(self.versions) > 1

    def definition(self) -> Manifest:
        """Return the CustomResourceDefinition, without the address of the conversion webhook.

        `ocf.runtime.admission.with_conversion` adds the address.

        Raises:
            ManifestError: If a structural schema cannot express a model.
        """
        return crd(
            self.group,
            *self.versions,
            kind=self.kind,
            plural=self.plural,
            short_names=self.short_names,
            categories=self.categories,
            scope=self.scope,
        )

    def version(self, name: str) -> CRDVersion:
        """Return a version.

        Args:
            name: Name of the version.

        Raises:
            BuildError: If there is no such version.
        """
        return self.versions[self._position(name)]

    def convert(self, manifest: Manifest, version: str) -> Manifest:
        """Return an object in another version.

        No information is lost: what the other version cannot express is kept in the annotation
        `conversion.ocf.dev/<version>` of the returned object, from which the conversion back restores it. A value that
        was changed meanwhile in the other version is not restored.

        Args:
            manifest: The object, in any of the versions; not changed.
            version: Name of the target version.

        Returns:
            The object in the target version, with the same metadata except for labels and annotations.

        Raises:
            BuildError: If a version is unknown.
            ManifestError: If the model of a version cannot read the object, a function fails, or changes metadata other
                than labels and annotations. The message has no other text of the exception, which may contain data of
                the object.
        """
        from ocf.runtime.crds.conversion import ConversionStep, convert_step

        at, target = self._position(split_api_version(manifest["apiVersion"])[1]), self._position(version)
        while at != target:
            after = at + (1 if target > at else -1)
            pair = self._chain[min(at, after)]
            forth, back = (None, None) if pair is None else (pair.up, pair.down)
            if after < at:
                forth, back = back, forth
            step = ConversionStep(self.group, self.versions[at], self.versions[after], forth, back)
            manifest, at = convert_step(manifest, step), after
        return manifest

    def _position(self, name: str) -> int:
        names = [version.name for version in self.versions]
        if name not in names:
            raise BuildError([f"{self.name} has no version {name!r}, expected one of {', '.join(names)}"])
        return names.index(name)

    @property
    def _pairs(self) -> list[tuple[CRDVersion, CRDVersion]]:
        return list(zip(self.versions, self.versions[1:], strict=False))

    def _between(self, older: CRDVersion, newer: CRDVersion) -> list[Conversion[Any, Any]]:
        return [each for each in self.conversions if (each.older, each.newer) == (older.model, newer.model)]

    def _name_problems(self, kind: str) -> Iterator[str]:
        found = name_problems(
            self.group,
            [version.name for version in self.versions],
            kind=kind,
            plural=self.plural,
            short_names=self.short_names,
            categories=self.categories,
        )
        yield from map(str, found)

    def _conversion_problems(self) -> Iterator[str]:
        for older, newer in self._pairs:
            found = len(self._between(older, newer))
            pair = f"{_described(older)} and {_described(newer)}"
            if found > 1:
                yield f"expected one conversion between {pair}, got {found}"
            if not found and older.model is not newer.model:
                yield f"there is no conversion between {pair}, which are neighbours"
        neighbours = {(older.model, newer.model) for older, newer in self._pairs}
        models = {version.model for version in self.versions}
        for each in self.conversions:
            pair = f"{each.older.__name__} and {each.newer.__name__}"
            if unknown := [model.__name__ for model in (each.older, each.newer) if model not in models]:
                yield f"the conversion between {pair} has models of no version: {', '.join(unknown)}"
            elif (each.older, each.newer) not in neighbours:
                if (each.newer, each.older) in neighbours:
                    yield f"the conversion between {pair} must have the model of the older version first"
                else:
                    chain = ", ".join(map(_described, self.versions))
                    yield f"the conversion between {pair} is not between neighbours; the versions are {chain}"
            for function in (each.up, each.down):
                if iscoroutinefunction(function):
                    yield f"{function.__qualname__} is a coroutine; conversion functions are plain functions"


def _described(version: CRDVersion) -> str:
    return f"{version.name} ({version.model.__name__})"
