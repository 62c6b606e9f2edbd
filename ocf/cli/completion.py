"""`ocf completion`: completion of commands and options in shells, and for `kubectl ocf`."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from typing import Annotated, Final

import typer

__all__ = ["Shell", "complete_for_kubectl", "completion", "enable_completion"]

_VARIABLE: Final = "_OCF_COMPLETE"
_FILES: Final = ":0"
"""Directive of cobra's completion protocol: where nothing fits, the shell completes names of files."""


class Shell(StrEnum):
    """Shells whose completion is supported."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    ctx: typer.Context, shell: Annotated[Shell, typer.Argument(help="The shell: bash, zsh or fish.")]
) -> None:
    """Print the script that completes commands and options of `ocf` in a shell.

    For bash, add `source <(ocf completion bash)` to ~/.bashrc; for zsh, the same with zsh to ~/.zshrc, after compinit;
    for fish, write the output to ~/.config/fish/completions/ocf.fish. kubectl's completion covers `kubectl ocf` itself.

    Example:
        source <(ocf completion bash)
    """
    from typer.completion import show_callback

    ctx.find_root().info_name = "ocf"  # also if it was called as a plugin of kubectl
    show_callback(ctx, ctx.command.params[0], str(shell))


def enable_completion() -> None:
    """Register the completion of shells, which the scripts ask for by an environment variable."""
    from typer.completion import get_completion_inspect_parameters

    get_completion_inspect_parameters()  # typer has no other function for it that is public


def complete_for_kubectl() -> None:
    """Complete `kubectl ocf`: print the completions of the arguments in the protocol of cobra.

    kubectl calls the program `kubectl_complete-ocf` with the words after `kubectl ocf`, the last one incomplete.
    Source: https://kubernetes.io/docs/reference/kubectl/generated/kubectl_plugin/.
    """
    from ocf.cli.app import app

    words = sys.argv[1:] or [""]
    os.environ |= {
        _VARIABLE: "complete_bash",
        "COMP_WORDS": " ".join(["ocf", *words]),
        "COMP_CWORD": str(len(words)),
    }
    enable_completion()
    try:
        app(prog_name="ocf")
    except SystemExit:
        typer.echo(_FILES)
