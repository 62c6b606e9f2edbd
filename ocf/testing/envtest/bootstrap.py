"""Startup of a control plane: folder, certificates, etcd, API server.

Each started program is put on an exit stack, so that a failure stops everything that was started before.
"""

import json
import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ocf.testing.envtest import flags
from ocf.testing.envtest.binaries import Program, Programs
from ocf.testing.envtest.certificates import Authority, CertificateFiles
from ocf.testing.envtest.http_probe import HttpProbe
from ocf.testing.envtest.startup import Launch, Ports, RunningServer, start

__all__ = ["MASTERS", "Base", "ControlPlaneProcess", "boot"]

MASTERS: Final = "system:masters"
"""The group that RBAC permits everything."""


@dataclass(frozen=True, slots=True)
class Base:
    """Common settings of all servers of a control plane."""

    programs: Programs
    folder: Path
    authority: Authority
    administrator: CertificateFiles
    ports: Ports
    seconds: float
    given_up: threading.Event

    def launch(
        self, stack: ExitStack, program: Program, arguments: Callable[[int], Sequence[str]], *, ready: str
    ) -> RunningServer:
        """Start a server that the stack stops."""
        how = Launch(
            program=self.programs.path(program),
            arguments=arguments,
            probe=lambda port: HttpProbe(port, self.authority.certificate, self.administrator),
            ready=ready,
            folder=self.folder,
            seconds=self.seconds,
        )
        server = start(how, ports=self.ports, given_up=self.given_up)
        stack.callback(server.program.stop)
        return server


@dataclass(frozen=True, slots=True)
class ControlPlaneProcess:
    """A running control plane that is ready."""

    base: Base
    server: RunningServer
    kubeconfig: Path
    ended: set[str] = field(default_factory=set)  # namespaces of blocks that have ended

    @property
    def url(self) -> str:
        """URL of the API server."""
        return f"https://127.0.0.1:{self.server.probe.port}"

    def write_kubeconfig(self, name: str, client: CertificateFiles, *, namespace: str = "default") -> Path:
        """Write a kubeconfig into the folder and return its file.

        Args:
            name: Name of the file, without suffix.
        """
        return _write_kubeconfig(
            self.base.folder / f"{name}.kubeconfig",
            server=self.url,
            authority=self.base.authority.certificate,
            client=client,
            namespace=namespace,
        )


def boot(
    stack: ExitStack,
    programs: Programs,
    changes: Mapping[str, str | None],
    *,
    ports: Ports,
    seconds: float,
    given_up: threading.Event,
) -> ControlPlaneProcess:
    """Start etcd and the API server.

    Args:
        changes: Additional or changed flags of the API server; None removes a flag.
    """
    folder = Path(tempfile.mkdtemp(prefix="ocf-envtest-"))
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    authority = Authority(folder)
    administrator = authority.client("admin", [MASTERS])
    base = Base(programs, folder, authority, administrator, ports, seconds, given_up)
    etcd_port = _start_etcd(stack, base)
    pair, tokens = authority.server("kube-apiserver"), authority.signing_keys("service-accounts")

    def chosen(port: int) -> list[str]:
        ours = flags.api_server(
            port,
            etcd_port=etcd_port,
            authority=authority.certificate,
            server=pair,
            client=administrator,
            tokens=tokens,
        )
        return flags.arguments(ours, changes)

    server = base.launch(stack, Program.API_SERVER, chosen, ready="/readyz")
    plane = ControlPlaneProcess(base, server, folder / "admin.kubeconfig")
    plane.write_kubeconfig("admin", administrator)
    return plane


def _start_etcd(stack: ExitStack, base: Base) -> int:
    pair = base.authority.server("etcd")

    def chosen(port: int) -> list[str]:
        return flags.arguments(flags.etcd(port, base.folder, authority=base.authority.certificate, server=pair), {})

    return base.launch(stack, Program.ETCD, chosen, ready="/health").probe.port


def _write_kubeconfig(
    file: Path, *, server: str, authority: Path, client: CertificateFiles, namespace: str = "default"
) -> Path:
    """Write a kubeconfig as JSON, which is also YAML."""
    context = {"cluster": "envtest", "user": file.stem, "namespace": namespace}
    manifest = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "envtest", "cluster": {"server": server, "certificate-authority": str(authority)}}],
        "users": [
            {
                "name": file.stem,
                "user": {"client-certificate": str(client.certificate), "client-key": str(client.key)},
            }
        ],
        "contexts": [{"name": "envtest", "context": context}],
        "current-context": "envtest",
    }
    file.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    return file
