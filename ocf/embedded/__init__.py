"""An in-process Kubernetes API server: a cluster for demos, users' unit tests and fault tests.

It answers as a real API server does where operators depend on it: server-side apply with managed fields and conflicts,
optimistic locking, generations, finalizers, preconditions, owner garbage collection, watches with bookmarks and expiry,
paged lists, the status and scale subresources, dry runs, and the defaults that bite. Field types, merge keys and
resources of the built-in kinds come from a table that was read off a real server (`ocf/schema/builtin.NOTICE` says
which).

Kinds of the user's come as CustomResourceDefinitions, with structural schemas, defaults, pruning, several versions and
the status and scale subresources; a `CustomKind` is the short way to one without a schema. Admission webhooks are
asked, if there are configurations of them.

Their rules in CEL (`x-kubernetes-validations`) are evaluated, with `ocf[cel]`. What a rule costs a real server is not
estimated: one that is too expensive there is taken here, and only stopped when it takes too many steps.

What it does not do, it refuses with an `ApiError`: what few rules in CEL use, `matchConditions`, conversion webhooks,
and other servers behind it (`APIService`).

What it leaves out silently, because nothing wrong follows for most tests:

* **No controllers.** No ReplicaSet and no pod appears, and no status is filled in: write it through the status
  subresource. Only the garbage collector and the end of a namespace are simulated, at the end of every write, or when
  `settle` is called.
* **No admission plugins and little validation.** Names, labels, finalizers, owner references, and what must not change
  are checked, and so are autoscalers; most of what the other kinds demand of their specs is not.
* **Defaults** are complete for Deployment, StatefulSet, ReplicaSet, CronJob, PodTemplate, HorizontalPodAutoscaler,
  Service, Secret, Endpoints, EndpointSlice, PersistentVolumeClaim, NetworkPolicy, RoleBinding and ClusterRoleBinding. A
  Pod lacks what admission adds (priority, tolerations, quality of service), a DaemonSet its old annotation. Of Job,
  ReplicationController and all other kinds what was sent is stored. A Service gets the first free address of
  10.96.0.0/16 and the first free node ports.
* **Unknown fields** are dropped on create, update and patch, as the real one does unless asked to be strict or to warn
  (`EmbeddedCluster.checking`). Server-side apply refuses them.
* The garbage collector asks no webhook about what it deletes.
* Pods are deleted at once: there is no kubelet to wait for.
* An owner that was never in the cluster does not count as gone.
"""

from ocf.embedded.admission.dispatcher import AdmissionClient
from ocf.embedded.admission.errors import UnansweredError
from ocf.embedded.admission.webhook_client import HttpAdmissionClient
from ocf.embedded.api.write_options import FieldValidation
from ocf.embedded.cluster import EmbeddedCluster
from ocf.schema.builtin import CustomKind

__all__ = [
    "AdmissionClient",
    "CustomKind",
    "EmbeddedCluster",
    "FieldValidation",
    "HttpAdmissionClient",
    "UnansweredError",
]
