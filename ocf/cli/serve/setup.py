"""Setup shared by commands that serve a cluster: manifests, kubeconfig, and signals."""

from __future__ import annotations

import json
import os
import shlex
import tempfile
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ocf.cli.command import Number, OneOf
from ocf.cli.manifest_files import Document, read_documents
from ocf.errors import ConfigError

if TYPE_CHECKING:
    from ocf_server import EmbeddedCluster
    from ocf_server.http.server import HttpServer

__all__ = [
    "ServeOutput",
    "kubeconfig_of",
    "kubeconfig_option",
    "load_documents",
    "load_files",
    "output_option",
    "port_option",
    "print_server",
]


class ServeOutput(StrEnum):
    """Output formats of the start message."""

    TEXT = "text"
    JSON = "json"


port_option = click.option("--port", type=Number(0, 65535), default=0, help="Port on 127.0.0.1; 0 selects a free one.")
kubeconfig_option = click.option(
    "--kubeconfig", type=Path, metavar="FILE", help="File for the kubeconfig; default: a temporary file."
)
output_option = click.option(
    "--output", type=OneOf(ServeOutput), default=ServeOutput.TEXT, help="text for people, json for programs."
)


async def load_files(embedded: EmbeddedCluster, files: Iterable[Path], *, field_manager: str) -> None:
    """Apply the objects of files to an embedded cluster; an error names the file and the line of the object."""
    await load_documents(embedded, list(read_documents(map(str, files))), field_manager=field_manager)


async def load_documents(embedded: EmbeddedCluster, documents: Sequence[Document], *, field_manager: str) -> None:
    """Apply the objects of documents, like `load_files`."""
    from ocf.cli.validate.places import find_place
    from ocf_server.http.preload import NotAppliedError, load_manifests

    for document in documents:
        if document.manifest is None:
            raise ConfigError(f"{document.file}: {document.problem}")
    try:
        await load_manifests(
            embedded, [one.manifest for one in documents if one.manifest is not None], field_manager=field_manager
        )
    except NotAppliedError as error:
        (document,) = (one for one in documents if one.manifest is error.manifest)
        raise ConfigError(f"{document.file}:{find_place(document, '').line}: {error}") from error


@asynccontextmanager
async def kubeconfig_of(server: HttpServer, path: Path | None) -> AsyncIterator[Path]:
    """Write the kubeconfig while the block runs; a temporary file is removed afterwards."""
    from ocf_server.http import write_kubeconfig

    if path is not None:
        write_kubeconfig(server.kubeconfig(), path)
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="ocf-serve-") as folder:
        temporary = Path(folder) / "kubeconfig"
        write_kubeconfig(server.kubeconfig(), temporary)
        yield temporary


def print_server(server: HttpServer, kubeconfig: Path, output: ServeOutput) -> None:
    """Print the address of the server, and the path of its kubeconfig."""
    if output is ServeOutput.JSON:
        found = {"url": server.url, "kubeconfig": str(kubeconfig.absolute()), "pid": os.getpid()}
        click.echo(json.dumps(found))
        return
    click.echo(f"serving on {server.url}; Ctrl-C stops it")
    click.echo(f"export KUBECONFIG={shlex.quote(str(kubeconfig.absolute()))}")
