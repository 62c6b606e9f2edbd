"""Redaction of secrets: goldens are stored in version control, and diffs and explanations appear in build logs.

Values of Secrets, and of environment variables with names like those of secrets, are replaced by digests, so that
changes remain visible.
"""

import hashlib
import json
import re
from operator import is_
from typing import Any, Final

from ocf.objects.manifest import Manifest
from ocf.objects.paths import get_field

__all__ = ["GENERATED", "redacted"]

GENERATED: Final = "(generated)"
"""Shown in place of a value that is generated once, and that no tool knows. It is not base64, so no Secret has it."""


_SECRET_FIELDS: Final = ("data", "stringData")
# `kubectl apply` stores the last applied object in this annotation.
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_SECRET_NAME: Final = re.compile(
    r"passw(or)?d|passphrase|secret|token|credential|(api|access|private|encryption|signing)_?key", re.IGNORECASE
)
# Names of secrets, and of files that contain them, are not secret.
_NAME_OF_SECRET: Final = re.compile(r"_(file|path|dir|name|url|ttl|enabled)$", re.IGNORECASE)
_SHOWN_DIGITS: Final = 12


def redacted(manifest: Manifest) -> Manifest:
    """Return an object with its secret values replaced by digests, so that changes remain visible.

    Args:
        manifest: Any object; it is not changed.

    Returns:
        The object without the values of `data` and `stringData` of a Secret, and without `value` of any environment
        variable with a name such as `DB_PASSWORD`; the same object if it contains no secrets.

    Example:
        >>> redacted({"apiVersion": "v1", "kind": "Secret", "stringData": {"token": "hunter2"}})["stringData"]
        {'token': 'redacted, sha256 f52fbd32b2b3'}
        >>> redacted({"kind": "Pod", "spec": {"containers": [{"env": [{"name": "DB_PASSWORD", "value": "hunter2"}]}]}})
        {'kind': 'Pod', 'spec': {'containers': [{'env': [{'name': 'DB_PASSWORD',
         'value': 'redacted, sha256 f52fbd32b2b3'}]}]}}
    """
    if (manifest.get("apiVersion"), manifest.get("kind")) == ("v1", "Secret"):
        hidden = {field: _hidden(manifest[field]) for field in _SECRET_FIELDS if manifest.get(field)}
        return _without_copy({**manifest, **hidden} if hidden else manifest, is_secret=True)
    shown: Manifest = _shown(manifest)
    return _without_copy(shown, is_secret=False)


def _hidden(values: Any) -> Any:
    if isinstance(values, dict):
        return {key: value if value == GENERATED else _digest(value) for key, value in values.items()}
    return _digest(values)


def _without_copy(manifest: Manifest, *, is_secret: bool) -> Manifest:
    """Replace the copy of the object that kubectl stores by a digest if it contains a secret."""
    annotations = get_field(manifest, ("metadata", "annotations"))
    copied = annotations.get(_LAST_APPLIED) if isinstance(annotations, dict) else None
    if copied is None or not (is_secret or _holds_secret(copied)):
        return manifest
    kept = {**annotations, _LAST_APPLIED: _digest(copied)}
    return {**manifest, "metadata": {**manifest["metadata"], "annotations": kept}}


def _holds_secret(text: object) -> bool:
    try:
        copied = json.loads(str(text))
    except (ValueError, RecursionError):
        # Not written by kubectl, so it may contain a secret.
        return True
    return _shown(copied) is not copied


def _shown(value: Any) -> Any:
    """Return a value without secret variables; parts without secrets are shared."""
    if isinstance(value, dict):
        replaced = {}
        for key, item in value.items():
            # Most values are texts; a call for each of them would take most of the time.
            if isinstance(item, dict | list):
                shown = _variables(item) if key == "env" else _shown(item)
                if shown is not item:
                    replaced[key] = shown
        return {**value, **replaced} if replaced else value
    if isinstance(value, list):
        items = [_shown(item) if isinstance(item, dict | list) else item for item in value]
        return value if all(map(is_, items, value)) else items
    return value


def _variables(variables: Any) -> Any:
    if not isinstance(variables, list):
        return _shown(variables)
    shown = [{**each, "value": _digest(each["value"])} if _is_secret(each) else each for each in variables]
    return variables if all(map(is_, shown, variables)) else shown


def _is_secret(variable: Any) -> bool:
    if not isinstance(variable, dict) or not isinstance(variable.get("value"), str) or not variable["value"]:
        return False
    name = str(variable.get("name", ""))
    return bool(_SECRET_NAME.search(name)) and not _NAME_OF_SECRET.search(name)


def _digest(value: object) -> str:
    return f"redacted, sha256 {hashlib.sha256(str(value).encode()).hexdigest()[:_SHOWN_DIGITS]}"
