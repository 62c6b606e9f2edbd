"""Editor of the image pull secrets of a pod or of a service account, which have the same list."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from ocf.editors.editor import Editor
from ocf.editors.keyed_lists import KeyedList
from ocf.editors.model_values import field_type, require
from ocf.lazy_types.kubernetes import V1LocalObjectReference
from ocf.lazy_types.pydantic import BaseModel

__all__ = ["PullSecretsEditor"]

ModelT = TypeVar("ModelT", bound="BaseModel")

_PULL_SECRETS: Final[KeyedList[Any, V1LocalObjectReference]] = KeyedList(
    "image_pull_secrets", key=lambda reference: reference.name
)


class PullSecretsEditor(Editor[ModelT]):
    """Edits `imagePullSecrets` of a model that has this field.

    Args:
        raw: The live model.
    """

    __slots__ = ()

    def ensure_image_pull_secret(self, name: str) -> None:
        """Add a pull secret unless the list contains it.

        Args:
            name: Name of the secret.

        Raises:
            ConfigError: If the name is not a string.
        """
        reference = field_type(type(self._raw), "image_pull_secrets")
        _PULL_SECRETS.ensure(self._raw, reference(name=require("imagePullSecrets", name, str)))

    def remove_image_pull_secret(self, name: str) -> None:
        """Remove all references to a pull secret.

        Args:
            name: Name of the secret.

        Raises:
            ConfigError: If the name is not a string.
        """
        _PULL_SECRETS.remove(self._raw, require("imagePullSecrets", name, str))
