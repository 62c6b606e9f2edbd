"""The CustomResourceDefinition of Memcached: `python -m examples.memcached.definition` prints it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from examples.memcached.model import GROUP, VERSION, Memcached
from ocf.objects import dump_document
from ocf.runtime.crds import AGE, CRDVersion, PrinterColumn, crd

if TYPE_CHECKING:
    from ocf.objects import Manifest

__all__ = ["COLUMNS", "definition"]

COLUMNS: Final = (PrinterColumn("Replicas", ".spec.replicas"), PrinterColumn("Ready", ".status.readyReplicas"), AGE)


@cache
def definition() -> Manifest:
    """Return the definition of `memcacheds.memcached.c5c3.io`: one version, v1alpha1, served and stored.

    All callers share it, because generating the schema takes a while; do not change it.
    """
    return crd(GROUP, CRDVersion(VERSION, Memcached, columns=COLUMNS), short_names=["mc"])


if __name__ == "__main__":
    print(dump_document(definition()), end="")
