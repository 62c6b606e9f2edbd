"""Models of the Kubernetes client, for annotations."""

from typing import TYPE_CHECKING

from ocf.lazy_types import lazy_types

if TYPE_CHECKING:
    from kubernetes.client import *  # noqa: F403 (all models) # pyright: ignore[reportWildcardImportFromLibrary]
else:
    __getattr__ = lazy_types("kubernetes.client")
