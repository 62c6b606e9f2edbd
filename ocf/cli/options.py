"""Options and arguments that several commands share, with the same name and help text everywhere."""

from __future__ import annotations

import click

from ocf.cli.command import Number

__all__ = [
    "autoscaler_namespace_option",
    "changes_option",
    "components_argument",
    "components_option",
    "context_option",
    "definitions_option",
    "feature_gate_option",
    "files_argument",
    "host_option",
    "image_option",
    "kubeconfig_option",
    "kubernetes_version_option",
    "leader_elect_option",
    "objects_option",
    "owner_option",
    "port_option",
    "sample_owner_option",
    "target_argument",
    "traceback_option",
]

files_argument = click.argument(
    "files",
    nargs=-1,
    required=True,
    metavar="FILE...",
    help="YAML or JSON files, folders with such files, or - for the standard input.",
)
kubernetes_version_option = click.option(
    "--kubernetes-version",
    metavar="VERSION",
    help="Kubernetes version whose feature gates apply, such as 1.34; default: 1.36.",
)
feature_gate_option = click.option(
    "--feature-gate",
    multiple=True,
    metavar="NAME=BOOL",
    help="Set HPAScaleToZero or HPAConfigurableTolerance; repeatable.",
)
kubeconfig_option = click.option("--kubeconfig", metavar="FILE", help="Kubeconfig file; default: that of kubectl.")
context_option = click.option("--context", metavar="NAME", help="Context of the kubeconfig; default: the current one.")
autoscaler_namespace_option = click.option(
    "--namespace", "-n", metavar="NAME", help="Namespace of the autoscaler; default: that of the context."
)
_OWNER_HELP = "Owners: a YAML or JSON file, a folder of such files, or - for the standard input; repeatable."
owner_option = click.option("--owner", required=True, multiple=True, metavar="FILE", help=_OWNER_HELP)
sample_owner_option = click.option(
    "--owner", multiple=True, metavar="FILE", help=f"{_OWNER_HELP} The privileges follow from their components."
)
target_argument = click.argument(
    "target",
    metavar="MODULE[:NAME]",
    help="The operators: shop.operator, shop/operator.py or shop; all of the module, or the one of the name.",
)
components_argument = click.argument(
    "target",
    metavar="MODULE[:NAME]",
    help="The operators: shop.operator, shop/operator.py or shop; all of the module, or the one of the name. "
    "Or a function, as for --components.",
)
components_option = click.option(
    "--components",
    default="",
    metavar="MODULE:FUNCTION",
    help="Function that returns components, in place of that of the operator; it takes an owner, an owner and the "
    "context, or nothing.",
)
objects_option = click.option(
    "--objects",
    multiple=True,
    metavar="FILE",
    help="Objects that components read in the cluster, as `kubectl get -o yaml` prints them; a file or a folder; "
    "repeatable.",
)
definitions_option = click.option(
    "--crd",
    multiple=True,
    metavar="FILE",
    help="CustomResourceDefinitions of further kinds, in addition to those of the operators; repeatable.",
)
changes_option = click.option(
    "changes",
    "--set",
    multiple=True,
    metavar="PATH=VALUE",
    help="Set a field of the owner to a JSON value or a string; repeatable.",
)
traceback_option = click.option("--traceback", is_flag=True, help="Print the traceback of an error.")
leader_elect_option = click.option("--leader-elect/--no-leader-elect", default=True, help="Use leader election.")
host_option = click.option(
    "--host",
    default="0.0.0.0",  # noqa: S104 (the kubelet and Prometheus connect from outside the pod)
    metavar="ADDRESS",
    help="Address for metrics and probes.",
)
port_option = click.option(
    "--port", type=Number(0, 65535), default=8080, help="Port for metrics and probes; 0 selects a free one."
)
image_option = click.option(
    "--image", default="ocf:latest", metavar="IMAGE", help="For manifests: a container image with ocf installed."
)
