"""Editor of the metadata of an object or of a pod template."""

from __future__ import annotations

from ocf.editors.editor import Editor
from ocf.editors.keyed_lists import ensure_entry, remove_entry
from ocf.lazy_types.kubernetes import V1ObjectMeta

__all__ = ["ObjectMetaEditor"]


class ObjectMetaEditor(Editor[V1ObjectMeta]):
    """Edits labels and annotations.

    Name, namespace and owner references are accessible through `raw` but should not be changed: they identify the
    object.

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
            key: Key, including its prefix if it has one.
            value: Value; an existing value is overwritten.

        Raises:
            ConfigError: If the key or the value is not a string.
        """
        ensure_entry(self._raw, "labels", key, value)

    def remove_label(self, key: str) -> None:
        """Remove a label if it exists.

        Args:
            key: Key of the label.

        Raises:
            ConfigError: If the key is not a string.
        """
        remove_entry(self._raw, "labels", key)

    def ensure_annotation(self, key: str, value: str) -> None:
        """Set an annotation.

        Args:
            key: Key, including its prefix if it has one.
            value: Value; an existing value is overwritten.

        Raises:
            ConfigError: If the key or the value is not a string.
        """
        ensure_entry(self._raw, "annotations", key, value)

    def remove_annotation(self, key: str) -> None:
        """Remove an annotation if it exists.

        Args:
            key: Key of the annotation.

        Raises:
            ConfigError: If the key is not a string.
        """
        remove_entry(self._raw, "annotations", key)
