"""Servers beside the API server that run on request: controller manager, scheduler and kwok."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from ocf.errors import ConfigError
from ocf.objects import Manifest
from ocf.testing.envtest import flags
from ocf.testing.envtest.binaries import Program
from ocf.testing.envtest.bootstrap import MASTERS, ControlPlaneProcess
from ocf.testing.envtest.certificates import CertificateFiles
from ocf.testing.envtest.http_probe import HttpProbe

__all__ = ["run_controllers", "run_kwok", "run_scheduler"]

Changes = Mapping[str, str | None]

# What creates others comes first.
_WORKLOADS: Final = (
    ("apis/autoscaling/v2", "horizontalpodautoscalers"),
    ("apis/batch/v1", "cronjobs"),
    ("apis/batch/v1", "jobs"),
    ("apis/apps/v1", "daemonsets"),
    ("apis/apps/v1", "deployments"),
    ("apis/apps/v1", "statefulsets"),
    ("apis/apps/v1", "replicasets"),
    ("api/v1", "replicationcontrollers"),
    ("api/v1", "pods"),
)


@contextmanager
def run_controllers(
    plane: ControlPlaneProcess, names: Iterable[str], *, hpa_sync_period: timedelta, changes: Changes
) -> Iterator[None]:
    """Run a controller manager for the duration of a block.

    Args:
        changes: Additional or changed flags; None removes a flag.
    """
    names = tuple(names)
    if not names:
        raise ConfigError("name at least one controller to run")
    kubeconfig = _kubeconfig(plane, Program.CONTROLLER_MANAGER)

    def chosen(port: int, pair: CertificateFiles) -> dict[str, str]:
        return flags.controller_manager(
            port, kubeconfig=kubeconfig, server=pair, controllers=names, hpa_sync_period=hpa_sync_period
        )

    with _running(plane, Program.CONTROLLER_MANAGER, chosen, changes, ready="/healthz"):
        yield


@contextmanager
def run_scheduler(
    plane: ControlPlaneProcess, configuration: Mapping[str, Any] | None, *, changes: Changes
) -> Iterator[None]:
    """Run a scheduler for the duration of a block.

    Args:
        changes: Additional or changed flags; None removes a flag.
    """
    kubeconfig = _kubeconfig(plane, Program.SCHEDULER)
    content = flags.scheduler_configuration(kubeconfig, configuration or {})
    file = _written(plane, f"{Program.SCHEDULER}.json", [content])

    def chosen(port: int, pair: CertificateFiles) -> dict[str, str]:
        return flags.scheduler(port, configuration=file, server=pair)

    with _running(plane, Program.SCHEDULER, chosen, changes, ready="/readyz"):
        yield


@contextmanager
def run_kwok(plane: ControlPlaneProcess, stages: Sequence[Manifest] | None, *, changes: Changes) -> Iterator[None]:
    """Run kwok for the duration of a block.

    Args:
        stages: Its Stage objects; None for those of `kwok_stages.yaml`.
        changes: Additional or changed flags; None removes a flag.
    """
    kubeconfig = _kubeconfig(plane, Program.KWOK)
    if stages is None:
        file = plane.base.folder / "kwok.yaml"
        file.write_bytes(files("ocf.testing.envtest").joinpath("kwok_stages.yaml").read_bytes())
    else:
        file = _written(plane, "kwok.yaml", stages)

    def chosen(port: int, pair: CertificateFiles) -> dict[str, str]:
        return flags.kwok(port, kubeconfig=kubeconfig, server=pair, stages=file)

    with _running(plane, Program.KWOK, chosen, changes, ready="/readyz"):
        yield


def _kubeconfig(plane: ControlPlaneProcess, program: Program) -> Path:
    return plane.write_kubeconfig(program, plane.base.authority.client(f"system:{program}", [MASTERS]))


def _written(plane: ControlPlaneProcess, name: str, documents: Iterable[Manifest]) -> Path:
    """Write documents as JSON, which is also YAML."""
    file = plane.base.folder / name
    file.write_text("\n---\n".join(map(json.dumps, documents)), encoding="utf-8")
    return file


@contextmanager
def _running(
    plane: ControlPlaneProcess,
    program: Program,
    chosen: Callable[[int, CertificateFiles], dict[str, str]],
    changes: Changes,
    *,
    ready: str,
) -> Iterator[None]:
    _delete_workloads(plane.server.probe, plane.ended)
    pair = plane.base.authority.server(program)
    with ExitStack() as stack:
        server = plane.base.launch(
            stack, program, lambda port: flags.arguments(chosen(port, pair), changes), ready=ready
        )
        with server.in_use():
            yield


def _delete_workloads(probe: HttpProbe, namespaces: Collection[str]) -> None:
    """Delete the pods, workloads and HPAs of earlier tests, which would keep a new server busy for minutes."""
    options = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background", "gracePeriodSeconds": 0}
    with probe.connected():
        for api, plural in _WORKLOADS:
            _, found = probe.ask("GET", f"/{api}/{plural}")
            for namespace in {item["metadata"]["namespace"] for item in found.get("items") or ()} & set(namespaces):
                probe.ask("DELETE", f"/{api}/namespaces/{namespace}/{plural}", options)
