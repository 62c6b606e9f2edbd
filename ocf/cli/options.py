"""Options that several commands have, so that they are called and explained alike everywhere."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["Changes", "Context", "FeatureGateFlags", "Files", "Kubeconfig", "KubernetesVersion", "Owner", "Traceback"]

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...", help="YAML or JSON; a folder stands for all such files in it; - is the standard input."
    ),
]
KubernetesVersion = Annotated[
    str | None,
    typer.Option(metavar="VERSION", help="Whose feature gates count, for example 1.34; 1.36 by default."),
]
FeatureGateFlags = Annotated[
    list[str] | None, typer.Option(metavar="NAME=BOOL", help="HPAScaleToZero or HPAConfigurableTolerance.")
]
Kubeconfig = Annotated[str | None, typer.Option(metavar="FILE", help="As kubectl finds it by default.")]
Context = Annotated[str | None, typer.Option(metavar="NAME", help="The current one by default.")]
Owner = Annotated[
    str, typer.Option(metavar="FILE", help="The owner, or several, as YAML or JSON; - is the standard input.")
]
Changes = Annotated[
    list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Set a field of the owner, as JSON or text.")
]
Traceback = Annotated[bool, typer.Option("--traceback", help="Show where an error comes from.")]
