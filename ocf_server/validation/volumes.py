"""Validation of the volumes of a pod.

Source: `ValidateVolumes` and `validateVolumeSource` in `pkg/apis/core/validation/validation.go` of Kubernetes.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from ocf.objects.field_errors import FieldError, duplicate, forbidden, invalid, required
from ocf.objects.name_validation import dns_label, dns_subdomain
from ocf_server.validation.fields import each_problem
from ocf_server.validation.volume_sources import SOURCE_RULES

__all__ = ["volume_errors"]

_Json: TypeAlias = Mapping[str, Any]

# The kubelet names an iSCSI interface after the portal and the volume, and such names are bounded.
_LONGEST_PORTAL: Final = 64


def volume_errors(
    volumes: Sequence[_Json], path: str, *, pod_name: str = "", is_pod: bool
) -> tuple[dict[str, _Json], list[FieldError]]:
    """Return the valid volumes by name, which mounts may refer to, and the errors of the others.

    Args:
        pod_name: Name of the pod; empty for a template.
        is_pod: Whether they are those of a pod, not of a template.

    Returns:
        The volumes and the errors, in the order of the API server.
    """
    errors: list[FieldError] = []
    known: dict[str, _Json] = {}
    created = {f"{pod_name}-{volume['name']}" for volume in volumes if pod_name and "ephemeral" in volume}
    for index, volume in enumerate(volumes):
        place, name = f"{path}[{index}]", volume["name"]
        found = [*_source_errors(volume, place, pod_name=pod_name, is_pod=is_pod)]
        found += each_problem(dns_label, name, f"{place}.name") if name else [required(f"{place}.name")]
        if name in known:
            found.append(duplicate(f"{place}.name", name))
        if not found:
            known[name] = volume
        errors += found
        claim = volume.get("persistentVolumeClaim", {}).get("claimName", "")
        if claim in created:
            detail = "must not reference a PVC that gets created for an ephemeral volume"
            errors.append(invalid(f"{place}.persistentVolumeClaim.claimName", claim, detail))
    return known, errors


def _source_errors(volume: _Json, path: str, *, pod_name: str, is_pod: bool) -> Iterator[FieldError]:
    first = ""
    for name, rule in SOURCE_RULES.items():
        if name not in volume:
            continue
        if first:
            yield forbidden(f"{path}.{_FORBIDDEN_PATHS.get(name, name)}", "may not specify more than 1 volume type")
        else:
            first = name
            yield from rule(volume[name], f"{path}.{_PATHS.get(name, name)}")
        if name == "iscsi":
            yield from _iscsi_length(volume, path)
        elif name == first == "ephemeral":
            yield from _claim_name(pod_name, volume["name"], f"{path}.name")
        elif name == first == "image" and is_pod and not volume[name].get("reference"):
            yield required(f"{path}.image.reference")
    if not first:
        yield required(path, "must specify a volume type")


def _claim_name(pod_name: str, name: str, path: str) -> Iterator[FieldError]:
    if pod_name and name:
        claim = f"{pod_name}-{name}"
        yield from (invalid(path, name, f'PVC name "{claim}": {problem}') for problem in dns_subdomain(claim))


def _iscsi_length(volume: _Json, path: str) -> Iterator[FieldError]:
    source, name = volume["iscsi"], volume["name"]
    if "initiatorName" in source and len(f"{name}:{source.get('targetPortal', '')}") > _LONGEST_PORTAL:
        rule = "must be under 64 characters if iscsi.initiatorName is specified."
        yield invalid(f"{path}.name", name, f"Total length of <volume name>:<iscsi.targetPortal> {rule}")


_PATHS: Final = {"gcePersistentDisk": "persistentDisk"}


_FORBIDDEN_PATHS: Final = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
"""Fields that the API server names differently in its errors."""
