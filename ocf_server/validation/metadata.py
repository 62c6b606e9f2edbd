"""Validation of the metadata in the order of the API server, which repeats some rules.

Source: `ValidateObjectMeta` in `pkg/apis/core/validation/validation.go` of Kubernetes and `validateCommonFields` in
`pkg/registry/rest/update.go` of the generic API server.
"""

from collections.abc import Iterator

from ocf.objects import Manifest
from ocf.objects.field_errors import FieldError
from ocf.objects.metadata_validation import creation_errors, standard_finalizer_errors, update_errors
from ocf.objects.name_validation import (
    NameRule,
    dns_subdomain,
    dns_subdomain_prefix,
    path_segment,
    path_segment_prefix,
)

__all__ = ["common_update_errors", "metadata_errors", "metadata_update_errors"]


def metadata_errors(
    metadata: Manifest, rule: NameRule = dns_subdomain, prefix_rule: NameRule = dns_subdomain_prefix
) -> Iterator[FieldError]:
    """Yield the errors in the metadata of an object, as `ValidateObjectMeta` does.

    Args:
        prefix_rule: The rule for the prefix of a generated name.

    Yields:
        The errors, in the order of the API server.
    """
    yield from creation_errors(metadata, rule, prefix_rule)
    yield from standard_finalizer_errors(metadata)


def common_update_errors(metadata: Manifest, live: Manifest) -> Iterator[FieldError]:
    """Yield the errors in the metadata of an update that are found before the rules of its kind."""
    yield from creation_errors(metadata, path_segment, path_segment_prefix)
    yield from update_errors(metadata, live)


def metadata_update_errors(metadata: Manifest, live: Manifest) -> Iterator[FieldError]:
    """Yield the errors in the metadata of an update, as `ValidateObjectMetaUpdate` does for most kinds.

    Yields:
        The errors, in the order of the API server.
    """
    yield from update_errors(metadata, live)
    yield from standard_finalizer_errors(metadata)
