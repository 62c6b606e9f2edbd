"""An in-process Kubernetes API server: a cluster for demos, users' unit tests and fault tests.

It answers as a real API server does where operators depend on it: server-side apply with managed fields and conflicts,
optimistic locking, generations, finalizers, preconditions, owner garbage collection, watches with bookmarks and expiry,
paged lists, the status and scale subresources, dry runs, and the defaults that bite. Field types, merge keys and
resources of the built-in kinds come from a table that was read off a real server (`schema.NOTICE` beside it says
which).

What it does not do, it refuses with an `ApiError`: strategic merge patches, kinds in a second version (`autoscaling/v1`
and `events.k8s.io/v1`), CustomResourceDefinitions (register a `CustomKind` instead), field selectors other than name
and namespace.

What it leaves out silently, because nothing wrong follows for most tests:

* **No controllers.** No ReplicaSet and no pod appears, and no status is filled in: write it through the status
  subresource. Only the garbage collector and the end of a namespace are simulated, at the end of every write, or when
  `settle` is called.
* **No admission plugins and little validation.** Names, labels, finalizers, owner references, and what must not change
  are checked; most of what the kinds demand of their specs is not.
* **Defaults** are complete for Deployment, StatefulSet, ReplicaSet, CronJob, PodTemplate, HorizontalPodAutoscaler,
  Service, Secret, Endpoints, EndpointSlice, PersistentVolumeClaim, NetworkPolicy, RoleBinding and ClusterRoleBinding. A
  Pod lacks what admission adds (priority, tolerations, quality of service), a DaemonSet its old annotation. Of Job,
  ReplicationController and all other kinds what was sent is stored. A Service gets the first free address of
  10.96.0.0/16 and the first free node ports.
* **Unknown fields** are dropped on create, update and patch, as the real one does unless asked to be strict; its
  warnings are lost. Server-side apply refuses them.
* Pods are deleted at once: there is no kubelet to wait for.
* An owner that was never in the cluster does not count as gone.
"""

from ocf.cluster.embedded.cluster import EmbeddedCluster
from ocf.cluster.embedded.requests import Request, RequestLog, Verb
from ocf.cluster.embedded.schema import CustomKind

__all__ = ["CustomKind", "EmbeddedCluster", "Request", "RequestLog", "Verb"]
