"""`ocf completion`: completion of commands and options in shells, and for `kubectl ocf`."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Final

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    shell_complete,
)

from ocf.cli.app import COMPLETION_VARIABLE, app
from ocf.cli.command import Command, OneOf

__all__ = ["Shell", "complete", "complete_for_kubectl", "completion"]

_PROGRAM: Final = "ocf"
_FILES: Final = ":0"
"""Directive of cobra's completion protocol: where nothing fits, the shell completes names of files."""


class Shell(StrEnum):
    """Shells whose completion is supported."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


class _FilesOtherwise(ShellComplete):
    """Lets the shell complete names of files where nothing fits: most values are files."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        return super().get_completions(args, incomplete) or [CompletionItem(incomplete, type="file")]


@add_completion_class
class _Bash(_FilesOtherwise, BashComplete):
    pass


@add_completion_class
class _Zsh(_FilesOtherwise, ZshComplete):
    pass


@add_completion_class
class _Fish(_FilesOtherwise, FishComplete):
    pass


@click.command(cls=Command)
@click.argument("shell", type=OneOf(Shell), metavar="SHELL", help="The shell: bash, zsh or fish.")
def completion(shell: Shell) -> None:
    """Print the script that completes commands and options of `ocf` in a shell.

    For bash, add `source <(ocf completion bash)` to ~/.bashrc; for zsh, the same with zsh to ~/.zshrc, after compinit;
    for fish, write the output to ~/.config/fish/completions/ocf.fish. kubectl's completion covers `kubectl ocf` itself.

    Example:
        source <(ocf completion bash)
    """
    complete(f"{shell}_source")


def complete(instruction: str) -> int:
    """Print the script of a shell, or what it asks for.

    Args:
        instruction: The name of the shell, and `source` or `complete`, such as `bash_complete`.
    """
    return shell_complete(app, {}, _PROGRAM, COMPLETION_VARIABLE, instruction)


def complete_for_kubectl() -> None:
    """Complete `kubectl ocf`: print the completions of the arguments in the protocol of cobra.

    kubectl calls the program `kubectl_complete-ocf` with the words after `kubectl ocf`, the last one incomplete.
    Source: https://kubernetes.io/docs/reference/kubectl/generated/kubectl_plugin/.
    """
    *words, incomplete = sys.argv[1:] or [""]
    for item in ShellComplete(app, {}, _PROGRAM, COMPLETION_VARIABLE).get_completions(words, incomplete):
        click.echo(item.value)
    click.echo(_FILES)
