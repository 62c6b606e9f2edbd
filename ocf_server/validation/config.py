"""Validation of ConfigMaps, Secrets and ServiceAccounts.

Source: `ValidateConfigMap`, `ValidateSecret` and `ValidateServiceAccount` in `pkg/apis/core/validation/validation.go`
of Kubernetes.
"""

from collections.abc import Iterator
from functools import partial
from typing import Final

from ocf.objects import Manifest
from ocf.objects.data_validation import config_map_errors, secret_errors, secret_type_errors
from ocf.objects.field_errors import FieldError, forbidden
from ocf_server.validation.fields import immutable
from ocf_server.validation.metadata import metadata_errors, metadata_update_errors
from ocf_server.validation.validation import CreateRule, Validation

__all__ = ["VALIDATIONS"]

_FROZEN: Final = "field is immutable when `immutable` is set"


def _config_map_errors(manifest: Manifest) -> Iterator[FieldError]:
    yield from metadata_errors(manifest["metadata"])
    yield from config_map_errors(manifest)


def _config_map_update_errors(new: Manifest, old: Manifest) -> Iterator[FieldError]:
    yield from metadata_update_errors(new["metadata"], old["metadata"])
    yield from _frozen_errors(new, old, ("data", "binaryData"))
    yield from _config_map_errors(new)


def _secret_errors(manifest: Manifest) -> Iterator[FieldError]:
    yield from metadata_errors(manifest["metadata"])
    yield from secret_errors(manifest)
    yield from secret_type_errors(manifest)


def _secret_update_errors(new: Manifest, old: Manifest) -> Iterator[FieldError]:
    yield from metadata_update_errors(new["metadata"], old["metadata"])
    yield from immutable(new.get("type", ""), old.get("type", ""), "type")
    yield from _frozen_errors(new, old, ("data",))
    yield from _secret_errors(new)


def _frozen_errors(new: Manifest, old: Manifest, fields: tuple[str, ...]) -> Iterator[FieldError]:
    if old.get("immutable") is not True:
        return
    if new.get("immutable") is not True:
        yield forbidden("immutable", _FROZEN)
    for name in fields:
        if (new.get(name) or {}) != (old.get(name) or {}):
            yield forbidden(name, _FROZEN)


def _account_errors(manifest: Manifest) -> Iterator[FieldError]:
    return metadata_errors(manifest["metadata"])


def _update_errors(new: Manifest, old: Manifest, *, rule: CreateRule) -> Iterator[FieldError]:
    yield from metadata_update_errors(new["metadata"], old["metadata"])
    yield from rule(new)


VALIDATIONS: Final = {
    "ConfigMap": Validation(_config_map_errors, _config_map_update_errors),
    "Secret": Validation(_secret_errors, _secret_update_errors),
    "ServiceAccount": Validation(_account_errors, partial(_update_errors, rule=_account_errors)),
}
