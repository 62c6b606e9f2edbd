"""The metadata of an object, or of a pod template."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ocf.editors.editor import Editor
from ocf.editors.keyed_lists import ensure_entry, remove_entry

if TYPE_CHECKING:
    from kubernetes.client import V1ObjectMeta  # noqa: F401 (named in a base class, which is evaluated)

__all__ = ["ObjectMetaEditor"]


class ObjectMetaEditor(Editor["V1ObjectMeta"]):
    """Edits labels and annotations.

    Name, namespace and owners are within reach through `raw`, and best left alone: they say which object this is.

    Args:
        raw: The live metadata.

    Example:
        >>> from kubernetes.client import V1ObjectMeta
        >>> meta = ObjectMetaEditor(V1ObjectMeta(name="backend"))
        >>> meta.ensure_label("app.kubernetes.io/version", "2.3.1")
        >>> meta.raw.labels
        {'app.kubernetes.io/version': '2.3.1'}
    """

    __slots__ = ()

    def ensure_label(self, key: str, value: str) -> None:
        """Set a label.

        Args:
            key: Its key, with prefix if it has one.
            value: Its value; a value already there is overwritten.

        Raises:
            ConfigError: If one of them is no text.
        """
        ensure_entry(self._raw, "labels", key, value)

    def remove_label(self, key: str) -> None:
        """Drop a label; one that is not there is passed over.

        Args:
            key: Its key.

        Raises:
            ConfigError: If it is no text.
        """
        remove_entry(self._raw, "labels", key)

    def ensure_annotation(self, key: str, value: str) -> None:
        """Set an annotation.

        Args:
            key: Its key, with prefix if it has one.
            value: Its value; a value already there is overwritten.

        Raises:
            ConfigError: If one of them is no text.
        """
        ensure_entry(self._raw, "annotations", key, value)

    def remove_annotation(self, key: str) -> None:
        """Drop an annotation; one that is not there is passed over.

        Args:
            key: Its key.

        Raises:
            ConfigError: If it is no text.
        """
        remove_entry(self._raw, "annotations", key)
