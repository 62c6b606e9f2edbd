"""Options that several commands share, with the same name and help text everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "AutoscalerNamespace",
    "Changes",
    "Components",
    "Context",
    "Definitions",
    "FeatureGateFlags",
    "Files",
    "Host",
    "Image",
    "Kubeconfig",
    "KubernetesVersion",
    "LeaderElect",
    "Owner",
    "Port",
    "Traceback",
]

Files = Annotated[
    list[str],
    typer.Argument(metavar="FILE...", help="YAML or JSON files, folders with such files, or - for the standard input."),
]
KubernetesVersion = Annotated[
    str | None,
    typer.Option(metavar="VERSION", help="Kubernetes version whose feature gates apply, such as 1.34; default: 1.36."),
]
FeatureGateFlags = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=BOOL", help="Set HPAScaleToZero or HPAConfigurableTolerance; repeatable."),
]
Kubeconfig = Annotated[str | None, typer.Option(metavar="FILE", help="Kubeconfig file; default: that of kubectl.")]
Context = Annotated[
    str | None, typer.Option(metavar="NAME", help="Context of the kubeconfig; default: the current one.")
]
AutoscalerNamespace = Annotated[
    str | None,
    typer.Option(
        "--namespace", "-n", metavar="NAME", help="Namespace of the autoscaler; default: that of the context."
    ),
]
Owner = Annotated[
    str, typer.Option(metavar="FILE", help="YAML or JSON file with one or more owners, or - for the standard input.")
]
Components = Annotated[
    str,
    typer.Argument(
        metavar="MODULE[:NAME]",
        help="The operator: shop.operator, shop/operator.py or shop, optionally with its name; "
        "or a function that takes an owner and returns its components.",
    ),
]
Definitions = Annotated[
    list[Path] | None,
    typer.Option(
        "--crd",
        metavar="FILE",
        help="CustomResourceDefinitions to check the owner by, in addition to those of the operator; repeatable.",
    ),
]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="PATH=VALUE", help="Set a field of the owner to a JSON value or a string; repeatable."
    ),
]
Traceback = Annotated[bool, typer.Option("--traceback", help="Print the traceback of an error.")]
LeaderElect = Annotated[bool, typer.Option("--leader-elect/--no-leader-elect", help="Use leader election.")]
Host = Annotated[str, typer.Option(metavar="ADDRESS", help="Address for metrics and probes.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port for metrics and probes; 0 selects a free one.")]
Image = Annotated[
    str, typer.Option("--image", metavar="IMAGE", help="For manifests: a container image with ocf installed.")
]
