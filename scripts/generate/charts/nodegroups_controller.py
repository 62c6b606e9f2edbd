"""The node-group controller in the chart."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Final

from ocf.cli.nodegroups import nodegroups
from ocf.cli.nodegroups.providers import MOUNTED_CREDENTIALS, MOUNTED_TYPES, ProviderChoice, ProviderName
from ocf.controllers.nodegroup.manifests import NAME, NodeGroupInstallation, cluster_role, installation_manifests
from ocf.manifests.helm_templates import NAMESPACE, template
from ocf.objects import Manifest, dump_document
from ocf.runtime.rbac import PolicyRule, lease_rules, roles
from scripts.generate.charts.alerts import alert_groups
from scripts.generate.charts.command_options import CommandOption, CommandValues, command_options
from scripts.generate.charts.common import pod_values
from scripts.generate.charts.controller import ACCOUNT, ChartedController, choose, role_templates, rules_text
from scripts.generate.charts.notes import NOTE
from scripts.generate.charts.values import Section, Value

__all__ = ["OPTIONS", "nodegroup_manifests", "nodegroups_in_chart"]

_KEY: Final = "nodegroupsController"
_PATH: Final = f".Values.{_KEY}"
_ELECTED: Final = f"(and {_PATH}.leaderElection (not {_PATH}.dryRun))"
_MACHINES: Final = "ocf-machine-namespace"
"""Stands for the namespace of the machines while the objects are built."""
_MOUNTED_KUBECONFIG: Final = "/etc/ocf-management"

OPTIONS: Final[Mapping[str, Mapping[str, CommandOption]]] = {
    "": {
        "provider": CommandOption(
            parameter="provider",
            default=str(ProviderName.CLUSTER_API),
            schema={"enum": [str(name) for name in ProviderName]},
        ),
        "priorityCutoff": CommandOption(parameter="priority_cutoff"),
        "dryRun": CommandOption(parameter="dry_run"),
    },
    "clusterApi": {
        "machineNamespace": CommandOption(parameter="machine_namespace", schema={"minLength": 1}),
        "machineSelector": CommandOption(parameter="machine_selector"),
    },
    "vpsie": {
        "cluster": CommandOption(parameter="vpsie_cluster"),
        "datacenters": CommandOption(parameter="datacenter", default=[], schema={"items": {"type": "string"}}),
        "url": CommandOption(parameter="vpsie_url"),
    },
}
"""The options of the command that are values of the chart, by section and key."""


def nodegroup_manifests(namespace: str) -> list[Manifest]:
    """Return the objects that install the controller for Cluster API, with its defaults.

    Args:
        namespace: Its namespace.
    """
    choice = ProviderChoice(name=ProviderName.CLUSTER_API)
    command = ["ocf", "nodegroups", "run", *choice.arguments, f"--namespace={namespace}"]
    wanted = NodeGroupInstallation(namespace=namespace, image="ocf", command=command, provider_rules=choice.rules())
    return installation_manifests(wanted)


def nodegroups_in_chart() -> ChartedController:
    """Return the controller with its values and roles."""
    manifests = [each for each in nodegroup_manifests(NAMESPACE) if each["metadata"].get("namespace") != "default"]
    installed = [_with_command(each) if each["kind"] == "Deployment" else each for each in manifests]
    sections = {name: command_options(nodegroups, each, _below(name)) for name, each in OPTIONS.items()}
    return ChartedController(
        key=_KEY,
        section=Section(
            description="The node-group controller, docs/nodes/nodegroup-controller.md.",
            entries={
                "enabled": Value(default=False, description="Install it."),
                **sections[""].values,
                **_provider_values(sections),
                **pod_values(installed[-1]),
            },
        ),
        name=NAME,
        definitions=[each for each in installed if each["kind"] == "CustomResourceDefinition"],
        installed=installed,
        elected=_ELECTED,
        arguments=_arguments(sections),
        roles=_roles(),
        pod=_pod(),
        more={"types.yaml": _types()},
        alerts=alert_groups("nodegroup-controller"),
    )


def _below(section: str) -> str:
    return f"{_PATH}.{section}" if section else _PATH


def _with_command(deployment: Manifest) -> Manifest:
    """Return the Deployment with a command without options, which are arguments in the chart."""
    spec = deployment["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    changed = {**pod, "containers": [{**container, "command": ["ocf", "nodegroups"]}]}
    return {**deployment, "spec": {**spec, "template": {**spec["template"], "spec": changed}}}


def _provider_values(sections: Mapping[str, CommandValues]) -> dict[str, Section]:
    kubeconfig = Value(
        default="",
        description="Secret with the file kubeconfig, of the management cluster; empty for the cluster itself.",
    )
    types = Value(
        default=[],
        description="The instance types, as in the file of --types; they become a ConfigMap.",
        schema={"items": {"type": "object", "required": ["name"]}},
    )
    existing = Value(default="", description="ConfigMap with the file types.yaml, in place of types.")
    secret = Value(
        default=f"{NAME}-credentials", description="Secret with the file token, or client-id and client-secret."
    )
    return {
        "clusterApi": Section(
            description="For the provider cluster-api.",
            entries={**sections["clusterApi"].values, "managementKubeconfigSecret": kubeconfig},
        ),
        "kwok": Section(
            description="For the provider kwok, which simulates nodes.",
            entries={"types": types, "existingConfigMap": existing},
        ),
        "vpsie": Section(
            description="For the provider vpsie.",
            entries={**sections["vpsie"].values, "credentialsSecret": secret},
        ),
    }


def _arguments(sections: Mapping[str, CommandValues]) -> str:
    vpsie = _below("vpsie")
    demanded = (
        f"{{{{- if not (and {vpsie}.cluster {vpsie}.datacenters) }}}}\n"
        f'{{{{- fail "{_KEY}.vpsie.cluster and {_KEY}.vpsie.datacenters must be set for the provider vpsie: the UUID of'
        ' the cluster, and at least one datacenter whose sizes are offered" }}\n{{- end }}\n'
    )
    kubeconfig = f"--management-kubeconfig={_MOUNTED_KUBECONFIG}/kubeconfig"
    managed = f"{{{{- if {_management()} }}}}\n- {kubeconfig}\n{{{{- end }}}}\n"
    provider = choose(
        (_provider(ProviderName.KWOK), f"- --types={MOUNTED_TYPES}\n"),
        (_provider(ProviderName.CLUSTER_API), f"{sections['clusterApi'].arguments}{managed}"),
        ("", f"{demanded}{sections['vpsie'].arguments}- --credentials={MOUNTED_CREDENTIALS}\n"),
    )
    unelected = f"{{{{- if not {_PATH}.leaderElection }}}}\n- --no-leader-elect\n{{{{- end }}}}\n"
    return f"- run\n{sections[''].arguments}{provider}- --namespace={NAMESPACE}\n{unelected}"


def _provider(name: ProviderName) -> str:
    return f'eq {_PATH}.provider "{name}"'


def _management() -> str:
    return f"{_below('clusterApi')}.managementKubeconfigSecret"


def _roles() -> str:
    kwok, machines = (
        ProviderChoice(types="types.yaml"),
        ProviderChoice(name=ProviderName.CLUSTER_API, namespace=_MACHINES),
    )
    rules = _by_mode(
        choose(
            (_provider(ProviderName.KWOK), rules_text(cluster_role() | kwok.rules())),
            ("", rules_text(cluster_role())),
        ),
        rules_text(cluster_role(dry_run=True) | kwok.rules(dry_run=True)),
    )
    cluster = roles(cluster_role(), name=NAME, account=ACCOUNT)
    cluster[0] = {**cluster[0], "rules": "@rules@"}
    text = role_templates(cluster, rules, _PATH, NAME)
    lease = _documents(lease_rules(NAME, NAMESPACE), NAME)
    managed = _by_mode(
        *(_documents(machines.rules(dry_run=each), f"{NAME}-machines") for each in (False, True))
    ).replace(_MACHINES, f"{{{{ {_below('clusterApi')}.machineNamespace }}}}")
    here = f"and ({_provider(ProviderName.CLUSTER_API)}) (not {_management()})"
    return f"{text}{choose((_ELECTED, lease))}{choose((here, managed))}"


def _by_mode(writing: str, dry: str) -> str:
    return choose((f"{_PATH}.dryRun", dry), ("", writing))


def _documents(rules: Iterable[PolicyRule], name: str) -> str:
    """Return roles as further documents of a template."""
    _, _, text = role_templates(roles(rules, name=name, account=ACCOUNT), "", _PATH, NAME).partition("\n")
    return f"---\n{text}"


def _pod() -> dict[str, str]:
    """Return the expressions for what the providers mount."""
    kwok = (
        "types",
        {"configMap": {"name": f'{{{{ {_below("kwok")}.existingConfigMap | default "{NAME}-types" }}}}'}},
        str(PurePosixPath(MOUNTED_TYPES).parent),
    )
    secrets = {"kubeconfig": (_management(), _MOUNTED_KUBECONFIG)}
    secrets["credentials"] = (f"{_below('vpsie')}.credentialsSecret", MOUNTED_CREDENTIALS)
    mounted = {
        name: (name, {"secret": {"secretName": f"{{{{ {path} }}}}"}}, folder)
        for name, (path, folder) in secrets.items()
    }
    cases = [
        (_provider(ProviderName.KWOK), kwok),
        (_provider(ProviderName.VPSIE), mounted["credentials"]),
        (f"and ({_provider(ProviderName.CLUSTER_API)}) {_management()}", mounted["kubeconfig"]),
    ]

    def chosen(indent: int, of: Mapping[str, Sequence[Any]]) -> str:
        found = choose(*((each, _list(of[each], indent)) for each, _ in cases), ("", f"{' ' * indent}  []\n"))
        return f"\n{found.rstrip()}"

    volumes = {condition: [{"name": name, **source}] for condition, (name, source, _) in cases}
    mounts = {
        condition: [{"name": name, "mountPath": folder, "readOnly": True}] for condition, (name, _, folder) in cases
    }
    # The types are read once: pods are replaced when they change.
    annotations = (
        f"{{{{- $annotations := dict }}}}{{{{- if and ({_provider(ProviderName.KWOK)}) {_below('kwok')}.types }}}}"
        f'{{{{- $annotations = dict "checksum/types" (toYaml {_below("kwok")}.types | sha256sum) }}}}{{{{- end }}}}'
        f"{{{{- toYaml (merge $annotations {_PATH}.podAnnotations) | nindent 8 }}}}"
    )
    return {"volumes": chosen(6, volumes), "volumeMounts": chosen(8, mounts), "annotations": annotations}


def _list(items: Sequence[Any], indent: int) -> str:
    _, _, text = dump_document({"items": list(items)}).partition("\n")
    return textwrap.indent(textwrap.dedent(text).replace("'{{", "{{").replace("}}'", "}}"), " " * indent)


def _types() -> str:
    kwok = _below("kwok")
    metadata = {"name": f"{NAME}-types", "namespace": NAMESPACE}
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"types.yaml": "@types@"}}
    text = template([manifest], {"types": f"|\n{{{{ toYaml {kwok}.types | indent 4 }}}}"}, note=NOTE)
    note, _, body = text.partition("\n")
    demanded = (
        f'{{{{- if not {kwok}.types }}}}\n{{{{- fail "{_KEY}.kwok.types must list instance types for the provider kwok,'
        f' unless {_KEY}.kwok.existingConfigMap names a ConfigMap that has them" }}}}\n{{{{- end }}}}\n'
    )
    needed = f"and ({_provider(ProviderName.KWOK)}) (not {kwok}.existingConfigMap)"
    return f"{note}\n{choose((needed, demanded + body))}"
