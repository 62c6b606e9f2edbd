"""`ocf default`: the autoscalers of files with the defaults of the API server."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING

import click
from click.exceptions import Exit

from ocf.cli.command import Command, OneOf
from ocf.cli.exit_status import FAILED, FOUND
from ocf.cli.options import feature_gate_option, files_argument, kubernetes_version_option, traceback_option
from ocf.cli.output import echo

if TYPE_CHECKING:
    from ocf.autoscaling import FeatureGates
    from ocf.objects import Manifest

__all__ = ["ManifestFormat", "default"]


class ManifestFormat(StrEnum):
    """Output formats of manifests."""

    YAML = "yaml"
    JSON = "json"


@click.command(cls=Command)
@files_argument
@kubernetes_version_option
@feature_gate_option
@click.option(
    "--output", type=OneOf(ManifestFormat), default=ManifestFormat.YAML, help="Output format; json prints one List."
)
@traceback_option
def default(
    files: tuple[str, ...],
    *,
    kubernetes_version: str | None,
    feature_gate: tuple[str, ...],
    output: ManifestFormat,
) -> None:
    """Print HorizontalPodAutoscalers as the API server would store them, in the version of the file.

    For an object that the server would reject, its errors are printed instead. Objects of other kinds, templates and
    other YAML are passed over.

    Example:
        ocf default web.yaml
    """
    from ocf.cli.manifest_files import read_documents
    from ocf.cli.validate.output import report_lines
    from ocf.cli.validate.report import check, gates_of
    from ocf.cli.validate.scope import ValidationScope
    from ocf.objects import dump_document

    gates = gates_of(kubernetes_version, feature_gate)
    scope, kept = ValidationScope(), []
    for document in scope.select(read_documents(files)):
        report = check(document, gates=gates)
        for line in report_lines(report) if scope.counts(report) else ():
            echo(line, err=True)
        if report.valid and document.manifest is not None:
            kept.append(_stored(document.manifest, gates))
    for line in scope.lines():
        echo(line, err=True)
    if output is ManifestFormat.JSON:
        click.echo(json.dumps({"apiVersion": "v1", "kind": "List", "items": kept}, indent=2, ensure_ascii=False))
    else:
        click.echo("---\n".join(dump_document(manifest) for manifest in kept), nl=False)
    if scope.unread:
        raise Exit(FAILED)
    if scope.invalid:
        raise Exit(FOUND)


def _stored(manifest: Manifest, gates: FeatureGates) -> Manifest:
    from ocf.autoscaling import admitted
    from ocf.autoscaling.api.v1_conversion import to_v1

    stored = admitted(manifest, gates=gates, any_version=True)
    stored = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", **stored}
    return to_v1(stored) if manifest.get("apiVersion") == "autoscaling/v1" else stored
