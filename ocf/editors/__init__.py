"""Editors: typed methods that change one part of an object, such as its metadata, its spec or a container."""

from ocf.editors.certificate import CertificateSpecEditor
from ocf.editors.config_data import ConfigMapDataEditor, SecretDataEditor
from ocf.editors.container import ContainerEditor
from ocf.editors.container_selectors import (
    all_containers,
    container_at_index,
    container_named,
    container_not_named,
    containers_named,
    containers_not_named,
)
from ocf.editors.content import UnstructuredContentEditor
from ocf.editors.cron_job import CronJobSpecEditor
from ocf.editors.daemon_set import DaemonSetSpecEditor
from ocf.editors.deployment import DeploymentSpecEditor
from ocf.editors.editor import Editor
from ocf.editors.hpa import HPASpecEditor
from ocf.editors.httproute import HTTPRouteSpecEditor
from ocf.editors.ingress import IngressSpecEditor
from ocf.editors.job import JobSpecEditor
from ocf.editors.metadata import ObjectMetaEditor
from ocf.editors.network_policy import NetworkPolicySpecEditor
from ocf.editors.overrides import strategic_merge
from ocf.editors.pod import PodSpecEditor
from ocf.editors.pod_disruption_budget import PodDisruptionBudgetSpecEditor
from ocf.editors.prometheus import PrometheusRuleSpecEditor, ServiceMonitorSpecEditor
from ocf.editors.pv import PVSpecEditor
from ocf.editors.pvc import PVCSpecEditor
from ocf.editors.rbac import AggregationRuleEditor, BindingSubjectsEditor, PolicyRulesEditor
from ocf.editors.replica_set import ReplicaSetSpecEditor
from ocf.editors.scaled_object import ScaledObjectSpecEditor
from ocf.editors.service import ServiceSpecEditor
from ocf.editors.service_account import ServiceAccountEditor
from ocf.editors.stateful_set import StatefulSetSpecEditor

__all__ = [
    "AggregationRuleEditor",
    "BindingSubjectsEditor",
    "CertificateSpecEditor",
    "ConfigMapDataEditor",
    "ContainerEditor",
    "CronJobSpecEditor",
    "DaemonSetSpecEditor",
    "DeploymentSpecEditor",
    "Editor",
    "HPASpecEditor",
    "HTTPRouteSpecEditor",
    "IngressSpecEditor",
    "JobSpecEditor",
    "NetworkPolicySpecEditor",
    "ObjectMetaEditor",
    "PVCSpecEditor",
    "PVSpecEditor",
    "PodDisruptionBudgetSpecEditor",
    "PodSpecEditor",
    "PolicyRulesEditor",
    "PrometheusRuleSpecEditor",
    "ReplicaSetSpecEditor",
    "ScaledObjectSpecEditor",
    "SecretDataEditor",
    "ServiceAccountEditor",
    "ServiceMonitorSpecEditor",
    "ServiceSpecEditor",
    "StatefulSetSpecEditor",
    "UnstructuredContentEditor",
    "all_containers",
    "container_at_index",
    "container_named",
    "container_not_named",
    "containers_named",
    "containers_not_named",
    "strategic_merge",
]
