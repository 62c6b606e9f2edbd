"""An in-process Kubernetes API server for demos, users' unit tests and fault tests.

It behaves like a real API server where operators depend on it: server-side apply with managed fields and conflicts,
optimistic locking, generations, finalizers, preconditions, garbage collection of dependents, watches with bookmarks
and expiry, paged lists, the status and scale subresources, dry runs, and the defaults that operators notice. Field
types, merge keys and resources of the built-in kinds come from a table that was generated from a real API server;
`ocf/schema/builtin.NOTICE` names its version.

Custom kinds are created as CustomResourceDefinitions, with structural schemas, defaults, pruning, several versions and
the status and scale subresources. `CustomKind` is a shorter way to add a kind without a schema. Admission webhooks are
called if webhook configurations exist, conversion webhooks if a CustomResourceDefinition has one.

CEL rules of the schemas (`x-kubernetes-validations`), match conditions of webhooks, ValidatingAdmissionPolicies and
MutatingAdmissionPolicies are evaluated; this needs `ocf[cel]`. The cost of a rule is not estimated: a rule that a real
API server rejects as too expensive is accepted here, and its evaluation is stopped after too many steps.

Features that are not supported are rejected with an `ApiError`: rarely used parts of regular expressions in CEL.

These features are left out silently, because most tests do not depend on them:

* **Controllers.** Only garbage collection and the deletion of namespaces are simulated, after every write or when
  `collect_garbage` is called. Unless `EmbeddedCluster.controllers` runs, no ReplicaSets or pods are created, and no
  status is filled in: write it through the status subresource.
* **Authorization**, unless `EmbeddedCluster(authorization=True)` asks for RBAC: every user may do everything.
* **Admission plugins, and some validation.** Workloads, networking, storage claims, configuration, access rules,
  quotas, leases and autoscalers are validated; of other built-in kinds only the metadata is.
* **Defaults** are complete for Pod, PodTemplate, Deployment, StatefulSet, ReplicaSet, Job, CronJob, Service, Secret,
  HorizontalPodAutoscaler, Endpoints, EndpointSlice, PersistentVolumeClaim, NetworkPolicy, IngressClass, StorageClass,
  PriorityClass, LimitRange, RoleBinding and ClusterRoleBinding. A Pod lacks what admission plugins add (priority,
  tolerations), a DaemonSet lacks its deprecated annotation. ReplicationController and all other kinds are stored as
  sent. A Job gets its labels and its selector. A Service gets the first free address of 10.96.0.0/12 and the first free
  node ports.
* **Unknown fields** are dropped on create, update and patch, unless `EmbeddedCluster.checking` asks for an error or a
  warning. Server-side apply rejects them.
* The garbage collector calls no admission webhooks for the objects it deletes.
* Without these controllers, there is no kubelet: a pod on a node that is deleted stays, as on a real API server, until
  it is deleted with a grace period of 0. A pod without a node is deleted immediately.
* An owner that never existed in the cluster does not count as deleted.
"""

from ocf.schema.builtin import CustomKind
from ocf_server.api.webhook_client import AdmissionClient, HttpAdmissionClient
from ocf_server.cluster import EmbeddedCluster
from ocf_server.controllers.settings import ControllerSettings

__all__ = [
    "AdmissionClient",
    "ControllerSettings",
    "CustomKind",
    "EmbeddedCluster",
    "HttpAdmissionClient",
]
