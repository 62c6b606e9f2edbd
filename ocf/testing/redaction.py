"""Secrets in what tests write down: goldens are kept in version control, and diffs end up in build logs."""

import hashlib
from typing import Final

from ocf.objects import Manifest

__all__ = ["redacted"]

_SECRET_FIELDS: Final = ("data", "stringData")
_SHOWN_DIGITS: Final = 12


def redacted(manifest: Manifest) -> Manifest:
    """Return an object without the values of a Secret; each is replaced by a digest, so that a change still shows.

    Args:
        manifest: Any object; left as it is.

    Returns:
        The same object if it is no Secret.

    Example:
        >>> redacted({"apiVersion": "v1", "kind": "Secret", "stringData": {"token": "hunter2"}})["stringData"]
        {'token': 'redacted, sha256 f52fbd32b2b3'}
    """
    if (manifest.get("apiVersion"), manifest.get("kind")) != ("v1", "Secret"):
        return manifest
    hidden = {
        field: {key: _digest(value) for key, value in manifest[field].items()}
        for field in _SECRET_FIELDS
        if isinstance(manifest.get(field), dict)
    }
    return {**manifest, **hidden}


def _digest(value: object) -> str:
    return f"redacted, sha256 {hashlib.sha256(str(value).encode()).hexdigest()[:_SHOWN_DIGITS]}"
