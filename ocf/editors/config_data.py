"""Entries of a ConfigMap or a Secret.

Both keep their entries at the top level of the object, so their editors wrap the object itself. Binary content is
base64 in the API; the editors take the plain content and encode it. Errors never contain the content of a Secret.
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any, TypeVar

from ocf.editors.editor import Editor
from ocf.editors.keyed_lists import ensure_entry, remove_entry
from ocf.editors.model_values import require
from ocf.errors import ConfigError, ManifestError
from ocf.lazy_types.kubernetes import V1ConfigMap, V1Secret
from ocf.lazy_types.pydantic import BaseModel
from ocf.objects import dump_document
from ocf.objects.documents import load_documents

if TYPE_CHECKING:
    from ocf.objects import Manifest

__all__ = ["ConfigMapDataEditor", "SecretDataEditor"]

ModelT = TypeVar("ModelT", bound="BaseModel")


class ConfigMapDataEditor(Editor[V1ConfigMap]):
    """Edits the entries of a ConfigMap.

    Source: https://kubernetes.io/docs/reference/kubernetes-api/config-and-storage-resources/config-map-v1/.

    Args:
        raw: The live ConfigMap.

    Example:
        >>> from kubernetes.client import V1ConfigMap
        >>> data = ConfigMapDataEditor(V1ConfigMap())
        >>> data.ensure_entry("app.yaml", "log: {level: info}")
        >>> data.merge_yaml("app.yaml", "log: {format: json}")
        >>> print(data.raw.data["app.yaml"], end="")
        log:
          level: info
          format: json
    """

    __slots__ = ()

    def ensure_entry(self, key: str, value: str) -> None:
        """Set an entry.

        Args:
            key: Key of the entry.
            value: Value of the entry; an existing value is overwritten.

        Raises:
            ConfigError: If the key or the value is not a string.
        """
        ensure_entry(self._raw, "data", key, value)

    def remove_entry(self, key: str) -> None:
        """Remove an entry if it exists.

        Args:
            key: Key of the entry.

        Raises:
            ConfigError: If the key is not a string.
        """
        remove_entry(self._raw, "data", key)

    def merge_yaml(self, key: str, patch: str) -> None:
        """Merge a YAML document into an entry that contains YAML or does not exist yet.

        Maps are merged key by key at every depth; any other value in the patch, including lists and null, replaces the
        existing value. The entry is serialized again, so its comments are lost. An empty patch changes nothing.

        Args:
            key: Key of the entry.
            patch: YAML text with at most one document, which is a map.

        Raises:
            ConfigError: If the entry or the patch cannot be parsed; the message contains the key and the line.
        """
        changes = _read_yaml(key, require("patch", patch, str), "YAML patch")
        if changes is None:
            return
        present = _read_yaml(key, (self._raw.data or {}).get(key, ""), "existing value as YAML") or {}
        self.ensure_entry(key, dump_document(_merged(present, changes)))

    def ensure_binary_entry(self, key: str, value: bytes) -> None:
        """Set a binary entry.

        Args:
            key: Key of the entry; it must differ from the keys of the text entries.
            value: Content, not encoded; existing content is overwritten.

        Raises:
            ConfigError: If the key is not a string or the value is not bytes.
        """
        ensure_entry(self._raw, "binary_data", key, _encoded(f"binaryData[{key}]", value))

    def remove_binary_entry(self, key: str) -> None:
        """Remove a binary entry if it exists.

        Args:
            key: Key of the entry.

        Raises:
            ConfigError: If the key is not a string.
        """
        remove_entry(self._raw, "binary_data", key)


class SecretDataEditor(Editor[V1Secret]):
    """Edits the entries of a Secret.

    All entries are kept in `data`. Entries written to `stringData` through `raw` are moved to `data` after the edits of
    a mutation and take precedence over entries with the same key, as on the API server.

    Source: https://kubernetes.io/docs/reference/kubernetes-api/config-and-storage-resources/secret-v1/.

    Args:
        raw: The live Secret.

    Example:
        >>> from kubernetes.client import V1Secret
        >>> data = SecretDataEditor(V1Secret())
        >>> data.ensure_entry("user", "shop")
        >>> data.ensure_entry("key", bytes([0, 255]))
        >>> data.raw.data
        {'user': 'c2hvcA==', 'key': 'AP8='}
    """

    __slots__ = ()

    def ensure_entry(self, key: str, value: str | bytes) -> None:
        """Set an entry.

        Args:
            key: Key of the entry.
            value: Content, not encoded; existing content is overwritten.

        Raises:
            ConfigError: If the key is not a string, or the value is neither a string nor bytes.
        """
        content = value.encode() if isinstance(value, str) else value
        ensure_entry(self._raw, "data", key, _encoded(f"data[{key}]", content))

    def remove_entry(self, key: str) -> None:
        """Remove an entry if it exists.

        Args:
            key: Key of the entry.

        Raises:
            ConfigError: If the key is not a string.
        """
        remove_entry(self._raw, "data", key)


def _encoded(where: str, value: object) -> str:
    if not isinstance(value, bytes):
        # The message contains only the type, because the value may be secret.
        raise ConfigError(f"{where}: must be text or bytes, not of type {type(value).__name__}")
    return b64encode(value).decode()


def _read_yaml(key: str, text: str, what: str) -> Manifest | None:
    try:
        documents = load_documents(text)
    except ManifestError as error:
        raise ConfigError(f'configmap entry "{key}": failed to parse {what}: {error}') from None
    if len(documents) > 1:
        found = f"at most one document is expected, not {len(documents)}"
        raise ConfigError(f'configmap entry "{key}": failed to parse {what}: {found}')
    return documents[0] if documents else None


def _merged(present: Any, changes: Any) -> Any:
    if not (isinstance(present, dict) and isinstance(changes, dict)):
        return changes
    return {**present, **{key: _merged(present.get(key), value) for key, value in changes.items()}}
