"""Other objects of the files that the linter compares an autoscaler with: those of the same cluster.

A repository often has an object several times: for each environment or version, or as base and overlay. So files and
folders with the same workload or autoscaler belong to different clusters, an object without a namespace or in `default`
is compared only with those of its own folder, and the nearest object is taken as the target.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from ocf.autoscaling.linter.namespace_index import NamespaceIndex
    from ocf.cli.manifest_files import Document
    from ocf.objects import Manifest

__all__ = ["Neighbours", "OtherObjects"]

# A second file or folder with the same object of one of these kinds is one of another cluster.
_TELLING: Final = frozenset(
    {"DaemonSet", "Deployment", "HorizontalPodAutoscaler", "Rollout", "ScaledObject", "StatefulSet"}
)
# Kinds of which a repository has many, and that no autoscaler has to do with.
_IRRELEVANT: Final = frozenset(
    {"ConfigMap", "CustomResourceDefinition", "Ingress", "NetworkPolicy", "Role", "RoleBinding", "Secret", "Service"}
)
# Namespaces of unrelated examples: to have one of them in common means nothing.
_ANYWHERE: Final = frozenset({"", "default"})


class OtherObjects(NamedTuple):
    """The objects around an autoscaler, the nearest ones first.

    Args:
        candidates: Those that may be its target, in whatever cluster they are.
        cluster: Those of its cluster; both include the autoscaler itself.
    """

    candidates: NamespaceIndex
    cluster: NamespaceIndex


class Neighbours:
    """The objects of all files by namespace.

    Args:
        documents: The documents; those that cannot be read are left out.
        one_cluster: Whether all files are of one cluster.
    """

    def __init__(self, documents: Iterable[Document], *, one_cluster: bool = False) -> None:
        self._one_cluster = one_cluster
        self._known: dict[tuple[tuple[str, ...], str, str], OtherObjects] = {}
        self._by_namespace: dict[str, list[Document]] = {}
        self._objects: dict[tuple[str, ...], set[tuple[str, str, str]]] = {}
        self._namespaces: dict[str, set[str]] = {}
        read = [document for document in documents if document.manifest is not None]
        for document in read:
            self._namespaces.setdefault(document.file, set()).update({_namespace(document.manifest or {})} - {""})
        for document in read:
            if document.manifest is None or _kind(document.manifest) in _IRRELEVANT:
                continue
            self._by_namespace.setdefault(self._place(document), []).append(document)
            if _kind(document.manifest) in _TELLING:
                parts = _parts(document)
                for depth in range(1, len(parts) + 1):
                    self._objects.setdefault(parts[:depth], set()).add(_identity(document.manifest))
        self._repeated, self._alone = self._places_of_repeated_objects()

    def of(self, document: Document) -> OtherObjects:
        """Return the objects that an autoscaler is compared with."""
        namespace = self._place(document)
        # The linter compares the namespaces as they are written.
        view = self._viewpoint(_parts(document), namespace), namespace, _namespace(document.manifest or {})
        if view not in self._known:
            self._known[view] = self._around(*view)
        return self._known[view]

    def _places_of_repeated_objects(self) -> tuple[set[tuple[str, ...]], set[tuple[str, ...]]]:
        """Return where an object is that there is a second time, by how it is written or by where it is.

        Returns:
            The files and folders with such an object, and the files whose folder has it a second time.
        """
        found: dict[tuple[object, ...], list[tuple[str, ...]]] = {}
        for namespace, documents in self._by_namespace.items():
            for each in documents:
                kind, written, name = _identity(each.manifest or {})
                for key in ((kind.lower(), name, written), (kind.lower(), name, "in", namespace)):
                    found.setdefault(key, []).append(_parts(each))
        repeated, alone = set[tuple[str, ...]](), set[tuple[str, ...]]()
        for files in found.values():
            if len(files) > 1:
                places = Counter(file[:depth] for file in files for depth in range(len(file) + 1))
                repeated.update(places)
                alone.update(file for file in files if places[file[:-1]] > 1)
        return repeated, alone

    def _viewpoint(self, parts: tuple[str, ...], namespace: str) -> tuple[str, ...]:
        """Return the file, or one that is not there, from which the objects of a namespace look the same.

        A file without an object that its folder has twice is no copy of a file in the folder, and of what it has there
        is nothing nearer: it sees what any file of the folder would see. The same holds for the files below a folder
        without an object that there is twice at all.
        """
        if parts in self._alone:
            return parts
        # Objects of a namespace without a name are compared with those of their own folder.
        folder = len(parts) - 1
        lowest = 0 if namespace not in _ANYWHERE or self._one_cluster else folder
        depth = next((each for each in range(lowest, folder) if parts[:each] not in self._repeated), folder)
        return (*parts[:depth], "")

    def _around(self, parts: tuple[str, ...], namespace: str, written: str) -> OtherObjects:
        """Return the objects around those of one file in one namespace."""
        from ocf.autoscaling.linter.namespace_index import NamespaceIndex

        def distance(other: Document) -> tuple[bool, int]:
            theirs = _parts(other)
            return theirs != parts, len(parts) + len(theirs) - 2 * _shared(parts, theirs)

        def same_cluster(other: Document) -> bool:
            theirs = _parts(other)
            together = namespace not in _ANYWHERE or parts[:-1] == theirs[:-1]
            return self._one_cluster or bool(together and not self._are_copies(parts, theirs))

        others = sorted(self._by_namespace.get(namespace, ()), key=distance)
        moved = [(each, _moved(each.manifest, written)) for each in others if each.manifest is not None]
        return OtherObjects(
            NamespaceIndex(manifest for _, manifest in moved),
            NamespaceIndex(manifest for each, manifest in moved if same_cluster(each)),
        )

    def _place(self, document: Document) -> str:
        """Return the namespace of an object, or the only one of its file: charts often write it to a part of them."""
        namespaces = self._namespaces.get(document.file, set())
        only = next(iter(namespaces)) if len(namespaces) == 1 else ""
        return _namespace(document.manifest or {}) or only

    def _are_copies(self, ours: tuple[str, ...], theirs: tuple[str, ...]) -> bool:
        """Return whether the files, or the folders in which their paths part, have the same object."""
        if ours == theirs:
            return False
        parted = _shared(ours, theirs) + 1
        known = self._objects
        return not known.get(ours[:parted], set()).isdisjoint(known.get(theirs[:parted], ()))


def _parts(document: Document) -> tuple[str, ...]:
    return _path_parts(document.file)


@cache
def _path_parts(file: str) -> tuple[str, ...]:
    return PurePath(os.path.normpath(file)).parts


def _shared(ours: tuple[str, ...], theirs: tuple[str, ...]) -> int:
    """Return how many parts two paths have in common at their start."""
    pairs = zip(ours, theirs, strict=False)
    return next((depth for depth, (our, their) in enumerate(pairs) if our != their), min(len(ours), len(theirs)))


def _moved(manifest: Manifest, namespace: str) -> Manifest:
    if _namespace(manifest) == namespace:
        return manifest
    metadata = manifest.get("metadata")
    return {**manifest, "metadata": {**(metadata if isinstance(metadata, dict) else {}), "namespace": namespace}}


def _identity(manifest: Manifest) -> tuple[str, str, str]:
    metadata = manifest.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return _kind(manifest), _namespace(manifest), str(name)


def _kind(manifest: Manifest) -> str:
    return str(manifest.get("kind"))


def _namespace(manifest: Manifest) -> str:
    metadata = manifest.get("metadata")
    return str(metadata.get("namespace") or "") if isinstance(metadata, dict) else ""
