"""Printers: the rows that `kubectl get` shows, by kind.

The columns are data of a real API server; the printers write the cells. Kinds without a printer show name and age. The
tests compare cells with those of a real API server.
"""

from collections.abc import Callable, Mapping
from typing import Final

from ocf.objects import Manifest
from ocf_server.http.printers import cluster, networking, policies, workloads
from ocf_server.http.printers.pods import pod
from ocf_server.http.printers.text import AgeClock, Printer

__all__ = ["PRINTERS", "ROW_ORDER", "AgeClock", "Printer"]

_ADMISSION: Final = "admissionregistration.k8s.io"
_FLOW: Final = "flowcontrol.apiserver.k8s.io"
_NETWORKING: Final = "networking.k8s.io"
_RBAC: Final = "rbac.authorization.k8s.io"
_STORAGE: Final = "storage.k8s.io"

PRINTERS: Final[Mapping[tuple[str, str], Printer]] = {
    ("", "ComponentStatus"): cluster.component_status,
    ("", "ConfigMap"): cluster.config_map,
    ("", "Endpoints"): networking.endpoints,
    ("", "Event"): cluster.event,
    ("", "Namespace"): cluster.namespace,
    ("", "Node"): cluster.node,
    ("", "PersistentVolume"): cluster.volume,
    ("", "PersistentVolumeClaim"): cluster.claim,
    ("", "Pod"): pod,
    ("", "PodTemplate"): workloads.pod_template,
    ("", "ReplicationController"): workloads.replication_controller,
    ("", "ResourceQuota"): cluster.quota,
    ("", "Secret"): cluster.secret,
    ("", "Service"): networking.service,
    (_ADMISSION, "MutatingAdmissionPolicy"): policies.admission_policy("mutations"),
    (_ADMISSION, "MutatingAdmissionPolicyBinding"): policies.policy_binding,
    (_ADMISSION, "MutatingWebhookConfiguration"): cluster.counted("webhooks"),
    (_ADMISSION, "ValidatingAdmissionPolicy"): policies.admission_policy("validations"),
    (_ADMISSION, "ValidatingAdmissionPolicyBinding"): policies.policy_binding,
    (_ADMISSION, "ValidatingWebhookConfiguration"): cluster.counted("webhooks"),
    ("apps", "ControllerRevision"): workloads.controller_revision,
    ("apps", "DaemonSet"): workloads.daemon_set,
    ("apps", "Deployment"): workloads.deployment,
    ("apps", "ReplicaSet"): workloads.replica_set,
    ("apps", "StatefulSet"): workloads.stateful_set,
    ("autoscaling", "HorizontalPodAutoscaler"): workloads.horizontal_pod_autoscaler,
    ("autoscaling", "Scale"): workloads.scale,
    ("batch", "CronJob"): workloads.cron_job,
    ("batch", "Job"): workloads.job,
    ("apiregistration.k8s.io", "APIService"): cluster.api_service,
    ("certificates.k8s.io", "CertificateSigningRequest"): cluster.signing_request,
    ("coordination.k8s.io", "Lease"): cluster.lease,
    ("discovery.k8s.io", "EndpointSlice"): networking.endpoint_slice,
    ("events.k8s.io", "Event"): cluster.event,
    (_FLOW, "FlowSchema"): policies.flow_schema,
    (_FLOW, "PriorityLevelConfiguration"): policies.priority_level,
    (_NETWORKING, "IPAddress"): networking.ip_address,
    (_NETWORKING, "Ingress"): networking.ingress,
    (_NETWORKING, "IngressClass"): networking.ingress_class,
    (_NETWORKING, "NetworkPolicy"): networking.network_policy,
    (_NETWORKING, "ServiceCIDR"): networking.service_cidr,
    ("node.k8s.io", "RuntimeClass"): cluster.with_field("handler"),
    ("policy", "PodDisruptionBudget"): workloads.disruption_budget,
    (_RBAC, "ClusterRoleBinding"): cluster.role_binding,
    (_RBAC, "RoleBinding"): cluster.role_binding,
    ("resource.k8s.io", "ResourceClaim"): policies.claim_of_devices,
    ("resource.k8s.io", "ResourceSlice"): policies.resource_slice,
    ("scheduling.k8s.io", "PriorityClass"): cluster.priority_class,
    (_STORAGE, "CSIDriver"): cluster.csi_driver,
    (_STORAGE, "CSINode"): cluster.counted("spec", "drivers"),
    (_STORAGE, "StorageClass"): cluster.storage_class,
    (_STORAGE, "VolumeAttachment"): policies.attachment,
    (_STORAGE, "VolumeAttributesClass"): cluster.with_field("driverName"),
}
"""The printers by group and kind."""

ROW_ORDER: Final[Mapping[tuple[str, str], Callable[[Manifest], tuple[int, str]]]] = {
    (_FLOW, "FlowSchema"): policies.precedence
}
"""By what the rows of a table are sorted, by group and kind; those of other kinds stay in the order of the list."""
