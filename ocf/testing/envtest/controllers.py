"""Controllers of kube-controller-manager."""

from enum import StrEnum

__all__ = ["ControllerName"]


class ControllerName(StrEnum):
    """A controller of kube-controller-manager, by its name.

    These are the ones that tests of operators need most often. Every other name that `kube-controller-manager --help`
    lists is accepted as a string.
    """

    CLUSTER_ROLE_AGGREGATION = "clusterrole-aggregation-controller"
    CRON_JOB = "cronjob-controller"
    DAEMON_SET = "daemonset-controller"
    DEPLOYMENT = "deployment-controller"
    DISRUPTION = "disruption-controller"
    ENDPOINT_SLICE = "endpointslice-controller"
    GARBAGE_COLLECTOR = "garbage-collector-controller"
    HORIZONTAL_POD_AUTOSCALER = "horizontal-pod-autoscaler-controller"
    JOB = "job-controller"
    NAMESPACE = "namespace-controller"
    NODE_LIFECYCLE = "node-lifecycle-controller"
    REPLICA_SET = "replicaset-controller"
    SERVICE_ACCOUNT = "serviceaccount-controller"
    STATEFUL_SET = "statefulset-controller"
