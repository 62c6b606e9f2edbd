"""Defaults of the API server for fields of values that have one owner as a whole.

Such a value (an atomic map, or an entry of an atomic list) is one field in `managedFields`, so the entry of its manager
does not show which parts of it were sent and which the API server has added. To find out whether an apply would change
the value, its defaults have to be known beforehand. Neither OpenAPI nor discovery publishes them. They are constants of
the functions `SetDefaults_*` of Kubernetes (pkg/apis/*/v*/defaults.go).

The table has every such struct that is a part of the desired state of a built-in kind. A default that depends on other
fields is listed if it is the only value that the API server accepts there.
"""

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["DEFAULTS"]

_RBAC: Final = "rbac.authorization.k8s.io"

DEFAULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "admissionregistration.v1.MatchResources": {
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
    },
    "admissionregistration.v1.NamedRuleWithOperations": {"scope": "*"},
    "admissionregistration.v1.RuleWithOperations": {"scope": "*"},
    "batch.v1.PodFailurePolicyOnPodConditionsPattern": {"status": "True"},
    "core.v1.EndpointPort": {"protocol": "TCP"},
    "core.v1.ObjectFieldSelector": {"apiVersion": "v1"},
    # Templates of claims are complete objects.
    "core.v1.PersistentVolumeClaim": {"apiVersion": "v1", "kind": "PersistentVolumeClaim"},
    "core.v1.PersistentVolumeClaimSpec": {"volumeMode": "Filesystem"},
    "core.v1.PersistentVolumeClaimStatus": {"phase": "Pending"},
    "core.v1.ServiceAccountTokenProjection": {"expirationSeconds": 3600},
    "discovery.v1.EndpointPort": {"name": "", "protocol": "TCP"},
    "networking.v1.NetworkPolicyPort": {"protocol": "TCP"},
    "rbac.v1.RoleRef": {"apiGroup": _RBAC},
    "rbac.v1.Subject": {"apiGroup": _RBAC},
    "resource.v1.DeviceSubRequest": {"allocationMode": "ExactCount", "count": 1},
    "resource.v1.DeviceToleration": {"operator": "Equal"},
    "resource.v1.ExactDeviceRequest": {"allocationMode": "ExactCount", "count": 1},
}
"""Default of a field, by name of the struct and of the field."""
