"""Owners of files, as commands read them."""

from collections.abc import Sequence
from functools import reduce

from ocf.cli.component_loader import read_owners, with_change
from ocf.objects import Manifest

__all__ = ["owners_of"]


def owners_of(path: str, changes: Sequence[str] = ()) -> list[Manifest]:
    """Return the manifests of a file.

    Args:
        path: The file.
        changes: Fields to set in each.
    """
    owners = [each.manifest for each in read_owners(path) if each.manifest is not None]
    return [reduce(with_change, changes, owner) for owner in owners]
