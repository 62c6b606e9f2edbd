"""The HPA controller in the chart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ocf.cli.hpa_controller import FEATURE_GATES, hpa_controller
from ocf.controllers.hpa import NAME, TARGETS, Mode, cluster_role
from ocf.controllers.hpa.crd import definition
from ocf.controllers.hpa.manifests import HpaInstallation, ScalableResource, installation_manifests
from ocf.manifests.helm_templates import NAMESPACE
from ocf.objects import Manifest
from ocf.runtime.rbac import lease_rules, roles
from scripts.generate.charts.alerts import alert_groups
from scripts.generate.charts.command_options import DURATION, CommandOption, command_options
from scripts.generate.charts.common import pod_values
from scripts.generate.charts.controller import ACCOUNT, ChartedController, choose, role_templates, rules_text
from scripts.generate.charts.values import Section, Value

__all__ = ["OPTIONS", "hpa_in_chart", "hpa_manifests"]

_KEY: Final = "hpaController"
_PATH: Final = f".Values.{_KEY}"
_WRITES: Final = f'(ne {_PATH}.mode "{Mode.DRY_RUN}")'
_REPLACES: Final = f'(eq {_PATH}.mode "{Mode.REPLACE}")'
_ELECTED: Final = f"(and {_PATH}.leaderElection {_WRITES})"
_OTHER: Final = ScalableResource("ocf-other-group", "ocf-other-resource")
"""Stands for a resource that is not one of Kubernetes' own."""

OPTIONS: Final = {
    "mode": CommandOption(parameter="mode", schema={"enum": [str(mode) for mode in Mode]}),
    "takeOver": CommandOption(parameter="take_over"),
    "takeOverDelay": CommandOption(parameter="take_over_delay", schema=DURATION),
    "syncPeriod": CommandOption(parameter="sync_period", schema=DURATION),
    "downscaleStabilization": CommandOption(parameter="downscale_stabilization", schema=DURATION),
    "tolerance": CommandOption(parameter="tolerance", schema={"minimum": 0}),
    "cpuInitializationPeriod": CommandOption(parameter="cpu_initialization_period", schema=DURATION),
    "initialReadinessDelay": CommandOption(parameter="initial_readiness_delay", schema=DURATION),
    "concurrentSyncs": CommandOption(parameter="concurrent_syncs", schema={"minimum": 1}),
    "sharding": CommandOption(parameter="sharding"),
    "requestTimeout": CommandOption(parameter="request_timeout", schema=DURATION),
    "kubernetesVersion": CommandOption(
        parameter="kubernetes_version", default="", schema={"pattern": r"^([0-9]+\.[0-9]+)?$"}
    ),
    "featureGates": CommandOption(
        parameter="feature_gates",
        default={},
        schema={"additionalProperties": False, "properties": {gate: {"type": "boolean"} for gate in FEATURE_GATES}},
    ),
}
"""The options of the command that are values of the chart, by their key."""


def hpa_manifests(namespace: str) -> list[Manifest]:
    """Return the objects that install the controller with its defaults.

    Args:
        namespace: Its namespace.
    """
    arguments = ["run", f"--mode={Mode.OWN_KIND}", "--output=json"]
    wanted = HpaInstallation(mode=Mode.OWN_KIND, namespace=namespace, image="ocf", arguments=arguments)
    return installation_manifests(wanted)


def hpa_in_chart() -> ChartedController:
    """Return the controller with its values and roles."""
    installed = hpa_manifests(NAMESPACE)
    options = command_options(hpa_controller, OPTIONS, _PATH)
    (deployment,) = (each for each in installed if each["kind"] == "Deployment")
    scales = Value(
        default=[_name(each) for each in TARGETS],
        description="All resources that the controller may scale, such as rollouts.argoproj.io: its role names them.",
        schema={"items": {"type": "string", "pattern": r"^(replicationcontrollers|[a-z0-9]+(\.[a-z0-9-]+)+)$"}},
    )
    unelected = f"{{{{- if not {_PATH}.leaderElection }}}}\n- --no-leader-elect\n{{{{- end }}}}\n"
    return ChartedController(
        key=_KEY,
        section=Section(
            description="The HPA controller, docs/autoscaling/hpa-controller.md.",
            entries={
                "enabled": Value(default=True, description="Install it."),
                **options.values,
                "scales": scales,
                **pod_values(deployment),
            },
        ),
        name=NAME,
        definitions=[definition()],
        defines=f'(eq {_PATH}.mode "{Mode.OWN_KIND}")',
        installed=installed,
        elected=_ELECTED,
        arguments=f"- run\n{options.arguments}{unelected}- --output=json\n",
        roles=_roles(),
        alerts=alert_groups("hpa-controller"),
    )


def _name(resource: ScalableResource) -> str:
    return f"{resource.resource}.{resource.group}" if resource.group else resource.resource


def _roles() -> str:
    base = choose(*((f'eq {_PATH}.mode "{mode}"', rules_text(cluster_role(mode, targets=()))) for mode in Mode))
    known = [(f'eq . "{_name(each)}"', _target_rules(each)) for each in TARGETS]
    targets = f"{{{{- range {_PATH}.scales }}}}\n{choose(*known, ('', _other_rules()))}{{{{- end }}}}\n"
    cluster = roles(cluster_role(Mode.OWN_KIND), name=NAME, account=ACCOUNT)
    cluster[0] = {**cluster[0], "rules": "@rules@"}
    lease = roles(lease_rules(NAME, NAMESPACE), name=NAME, account=ACCOUNT)
    lease[0] = {**lease[0], "rules": "@rules@"}
    one, several = (rules_text(lease_rules(NAME, NAMESPACE, sharded=sharded)) for sharded in (False, True))
    held = choose((f"{_PATH}.sharding", several), ("", one))
    text = role_templates(cluster, f"{base}{targets}", _PATH, NAME)
    # With a name of its own, since the controller may run in the namespace of that Lease.
    named = [each for each in cluster_role(Mode.REPLACE, targets=()) if each.namespace]
    other = roles(named, name=f"{NAME}-take-over", account=ACCOUNT)
    return f"{text}{choose((_ELECTED, _more(lease, held)))}{choose((_REPLACES, _more(other)))}"


def _more(manifests: Sequence[Manifest], rules: str = "") -> str:
    """Return the template of roles that follow others."""
    _, _, text = role_templates(manifests, rules, _PATH, NAME).partition("\n")
    return f"---\n{text}"


def _target_rules(target: ScalableResource) -> str:
    """Return what the role has for one resource."""
    found = {
        mode: rules_text(cluster_role(mode, targets=[target]) - cluster_role(mode, targets=()))
        for mode in (Mode.REPLACE, Mode.DRY_RUN)
    }
    # Inside of a range, `.` is the resource.
    return choose((_WRITES.replace(".Values", "$.Values"), found[Mode.REPLACE]), ("", found[Mode.DRY_RUN]))


def _other_rules() -> str:
    part = '{{{{ (splitn "." 2 .)._{} }}}}'
    text = _target_rules(_OTHER)
    return text.replace(_OTHER.resource, part.format(0)).replace(_OTHER.group, part.format(1))
