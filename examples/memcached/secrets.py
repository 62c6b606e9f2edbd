"""The Secrets that the pods read, and the hash annotation that replaces the pods when one of them changes.

The operator never writes a Secret: each one is a read-only resource whose content reaches the Deployment through a data
cell. A missing Secret leaves its cell empty and does not stop the reconcile: the pods wait for it, and the conditions
report it.
"""

from __future__ import annotations

import hashlib
from base64 import b64decode
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from examples.memcached.model import GROUP
from ocf.concepts import Data
from ocf.feature import BooleanGate
from ocf.primitives import deployment, secret

if TYPE_CHECKING:
    from kubernetes.client import V1Secret

    from examples.memcached.model import Memcached

__all__ = ["SECRET_HASH", "Entries", "reading", "rolling", "secret_hash", "used_secrets"]

SECRET_HASH: Final = f"{GROUP}/secret-hash"

Entries = dict[str, bytes]
"""Decoded content of a Secret."""


def used_secrets(cache: Memcached) -> tuple[str, ...]:
    """Return the names of the Secrets that the pods of a cache read, sorted.

    Args:
        cache: The owner.
    """
    used = {
        cache.sasl.credentials_secret_ref.name: cache.sasl.enabled,
        cache.tls.certificate_secret_ref.name: cache.tls.enabled,
    }
    return tuple(sorted(name for name, enabled in used.items() if name and enabled))


def secret_hash(secrets: Mapping[str, Entries]) -> str:
    """Return one hash of the content of several Secrets, independent of their order.

    Args:
        secrets: Content of each Secret by its name.

    Returns:
        A SHA-256, in hexadecimal digits.

    Example:
        >>> before = secret_hash({"tls": {"tls.crt": b"old"}, "sasl": {}})
        >>> secret_hash({"sasl": {}, "tls": {"tls.crt": b"old"}}) == before
        True
        >>> secret_hash({"sasl": {}, "tls": {"tls.crt": b"new"}}) == before
        False
    """
    digest = hashlib.sha256()
    for name in sorted(secrets):
        for key in sorted(secrets[name]):
            digest.update(b"\0".join((name.encode(), key.encode(), secrets[name][key])))
    return digest.hexdigest()


def reading(cells: Mapping[str, Data[Entries]]) -> list[secret.Builder]:
    """Return the read-only Secrets, each of which fills its cell.

    Args:
        cells: The cell of each Secret by its name.
    """
    return [secret.Builder({"metadata": {"name": name}}).extract_into(cell, _entries) for name, cell in cells.items()]


def rolling(cells: Mapping[str, Data[Entries]]) -> deployment.Mutation:
    """Return the mutation that replaces the pods when the content of a Secret changes.

    Args:
        cells: The cell of each Secret by its name; empty cells of missing Secrets are skipped.
    """

    def mutate(m: deployment.Mutator) -> None:
        found = {name: cell.require() for name, cell in cells.items() if cell.is_set}
        if found:
            m.roll_on_change(lambda: secret_hash(found), annotation=SECRET_HASH)

    return deployment.Mutation("secret-hash", mutate, feature=BooleanGate(bool(cells)))


def _entries(live: V1Secret) -> Entries:
    return {key: b64decode(text) for key, text in (live.data or {}).items()}
