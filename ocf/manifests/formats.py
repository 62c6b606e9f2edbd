"""Formats of the manifests."""

from enum import StrEnum

__all__ = ["Format"]


class Format(StrEnum):
    """Formats of the manifests."""

    KUSTOMIZE = "kustomize"
    HELM = "helm"
    OLM = "olm"
