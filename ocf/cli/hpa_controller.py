"""`ocf hpa-controller`: run the HPA controller, or print its manifests."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ocf.cli.hpa_migrate import run_migration
from ocf.cli.options import Context, Host, Image, Kubeconfig, KubernetesVersion, LeaderElect, Port, Traceback
from ocf.cli.output import echo, exit_on_error
from ocf.objects.printable import printable_json

if TYPE_CHECKING:
    from datetime import timedelta

    from ocf.autoscaling import FeatureGates
    from ocf.autoscaling.algorithm import Settings
    from ocf.controllers.hpa import ControllerOptions, DryRunResult, ScalableResource
    from ocf.controllers.hpa.manager import ProcessOptions
    from ocf.runtime.monitoring.http_server import Endpoints

__all__ = ["FEATURE_GATES", "hpa_controller"]

FEATURE_GATES: Final[Mapping[str, str]] = {
    "HPAConfigurableTolerance": "configurable_tolerance",
    "HPAGeneration": "observed_generation",
    "HPAScaleToZero": "scale_to_zero",
    "PodLevelResources": "pod_level_resources",
}
_DURATION: Final = "DURATION"


class ControllerAction(StrEnum):
    """Actions of the command."""

    RUN = "run"
    MANIFESTS = "manifests"
    MIGRATE = "migrate"


class ModeName(StrEnum):
    """Modes of the controller; the names are those of `ocf.controllers.hpa.Mode`, which is imported later."""

    OWN_KIND = "own-kind"
    REPLACE = "replace"
    DRY_RUN = "dry-run"


class LogOutput(StrEnum):
    """Output formats."""

    TEXT = "text"
    JSON = "json"


SyncPeriod = Annotated[
    str,
    typer.Option(
        "--sync-period",
        "--horizontal-pod-autoscaler-sync-period",
        metavar=_DURATION,
        help="Time between two syncs of an autoscaler.",
    ),
]
Downscale = Annotated[
    str,
    typer.Option(
        "--downscale-stabilization",
        "--horizontal-pod-autoscaler-downscale-stabilization",
        metavar=_DURATION,
        help="How long a recommendation prevents scaling down below it.",
    ),
]
Tolerance = Annotated[
    float,
    typer.Option(
        "--tolerance",
        "--horizontal-pod-autoscaler-tolerance",
        help="Difference of a ratio from 1 that does not change the replicas.",
    ),
]
CpuInitialization = Annotated[
    str,
    typer.Option(
        "--cpu-initialization-period",
        "--horizontal-pod-autoscaler-cpu-initialization-period",
        metavar=_DURATION,
        help="Time after its start in which a pod's cpu may be ignored.",
    ),
]
ReadinessDelay = Annotated[
    str,
    typer.Option(
        "--initial-readiness-delay",
        "--horizontal-pod-autoscaler-initial-readiness-delay",
        metavar=_DURATION,
        help="Time after its start in which an unready pod counts as not ready yet.",
    ),
]
Workers = Annotated[
    int,
    typer.Option(
        "--concurrent-syncs",
        "--concurrent-horizontal-pod-autoscaler-syncs",
        help="Number of autoscalers that are synced concurrently.",
    ),
]
LeaseNamespace = Annotated[
    str | None,
    typer.Option(
        "--lease-namespace",
        "--leader-elect-resource-namespace",
        metavar="NAME",
        help="Namespace of the Lease; default: that of the pod.",
    ),
]
Switches = Annotated[
    list[str] | None,
    typer.Option("--feature-gates", metavar="NAME=BOOL", help=f"Set {', '.join(FEATURE_GATES)}; repeatable."),
]
Targets = Annotated[
    list[str] | None,
    typer.Option(
        "--scales",
        metavar="RESOURCE",
        help="For manifests: a resource that the controller may scale, such as rollouts.argoproj.io; repeatable."
        " Default: those of Kubernetes.",
    ),
]


def hpa_controller(  # noqa: PLR0913 (each is an option)
    action: Annotated[
        ControllerAction,
        typer.Argument(help="Run the controller, print its manifests, or migrate autoscalers to its kind."),
    ] = ControllerAction.RUN,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="For migrate: the names of autoscalers.")
    ] = None,
    *,
    mode: Annotated[
        ModeName,
        typer.Option(help="Run HorizontalAutoscalers, replace the built-in controller, or only compare with it."),
    ] = ModeName.OWN_KIND,
    take_over: Annotated[
        bool,
        typer.Option(
            "--take-over", help="With replace: also take over autoscalers that another controller has synced."
        ),
    ] = False,
    take_over_delay: Annotated[
        str,
        typer.Option(
            "--take-over-delay",
            metavar=_DURATION,
            help="With replace: how long an autoscaler is claimed before it is scaled; longer than the sync period of"
            " any controller that may still run.",
        ),
    ] = "30s",
    sync_period: SyncPeriod = "15s",
    downscale_stabilization: Downscale = "5m0s",
    tolerance: Tolerance = 0.1,
    cpu_initialization_period: CpuInitialization = "5m0s",
    initial_readiness_delay: ReadinessDelay = "30s",
    concurrent_syncs: Workers = 5,
    kubernetes_version: KubernetesVersion = None,
    feature_gates: Switches = None,
    leader_elect: LeaderElect = True,
    lease_namespace: LeaseNamespace = None,
    host: Host = "0.0.0.0",  # noqa: S104 (the kubelet and Prometheus connect from outside the pod)
    port: Port = 8080,
    namespace: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="For manifests: the namespace of the controller, ocf-system by default. For migrate: that of the"
            " autoscalers, default by default.",
        ),
    ] = None,
    back: Annotated[
        bool, typer.Option("--back", help="For migrate: from the kind of the controller to HorizontalPodAutoscaler.")
    ] = False,
    image: Image = "ocf:latest",
    scales: Targets = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    output: Annotated[
        LogOutput, typer.Option(help="text for people, or json with one object per line.")
    ] = LogOutput.TEXT,
    traceback: Traceback = False,
) -> None:
    """Run the HPA algorithm as a controller.

    It never shares a target with the built-in controller. By default it runs a kind of its own. With --mode replace it
    runs autoscaling/v2 in a cluster where the built-in controller is disabled. With --mode dry-run it only reads, and
    prints its decisions next to those of the built-in controller.

    Example:
        ocf hpa-controller manifests --mode dry-run | kubectl apply -f -
    """
    with exit_on_error(traceback=traceback):
        if action is ControllerAction.MIGRATE:
            run_migration(names or (), namespace or "default", back=back, kubeconfig=kubeconfig, context=context)
            return
        settings = _settings(
            {
                "sync_period": ("--sync-period", sync_period),
                "downscale_stabilization": ("--downscale-stabilization", downscale_stabilization),
                "cpu_initialization_period": ("--cpu-initialization-period", cpu_initialization_period),
                "initial_readiness_delay": ("--initial-readiness-delay", initial_readiness_delay),
            },
            tolerance,
            concurrent_syncs,
            _features(kubernetes_version, feature_gates or ()),
        )
        delay = _duration("--take-over-delay", take_over_delay)
        options = _options(mode, settings, output, take_over=take_over, take_over_delay=delay)
        if action is ControllerAction.MANIFESTS:
            _print_manifests(options, namespace or "ocf-system", image, scales, elected=leader_elect, output=output)
            return
        process = _process(options, lease_namespace, host, port, elected=leader_elect)
        _log(output)
        from ocf.cluster.open_files import raise_open_files

        raise_open_files()
        asyncio.run(_run(process, kubeconfig, context, output))


def _settings(
    periods: Mapping[str, tuple[str, str]], tolerance: float, workers: int, features: FeatureGates
) -> Settings:
    import math

    from ocf.autoscaling.algorithm import Settings
    from ocf.errors import ConfigError

    if not (math.isfinite(tolerance) and tolerance >= 0):
        raise ConfigError(f"--tolerance must be a number of at least 0, such as 0.1, got {tolerance}")
    if workers < 1:
        raise ConfigError(f"--concurrent-syncs must be at least 1, got {workers}")
    read = {name: _period(flag, text) for name, (flag, text) in periods.items()}
    return replace(Settings(tolerance=tolerance, workers=workers, features=features), **read)  # type: ignore[arg-type]  # all of them are durations


def _duration(flag: str, text: str) -> timedelta:
    from ocf.errors import ConfigError
    from ocf.objects.durations import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise ConfigError(f"{flag} {error}") from None


def _period(flag: str, text: str) -> timedelta:
    from datetime import timedelta

    from ocf.errors import ConfigError

    found = _duration(flag, text)
    if found <= timedelta(0):
        raise ConfigError(f"{flag} must be longer than 0s, got {text}")
    return found


def _features(version: str | None, switches: Sequence[str]) -> FeatureGates:
    from ocf.autoscaling import FeatureGates
    from ocf.errors import ConfigError

    found = FeatureGates.for_release(version) if version else FeatureGates()
    for switch in (one for text in switches for one in text.split(",")):
        name, _, value = switch.partition("=")
        if name not in FEATURE_GATES or value.lower() not in {"true", "false"}:
            known = ", ".join(FEATURE_GATES)
            raise ConfigError(f'invalid feature gate "{switch}": write NAME=true or NAME=false, with one of {known}')
        found = found._replace(**{FEATURE_GATES[name]: value.lower() == "true"})
    return found


def _options(
    mode: ModeName, settings: Settings, output: LogOutput, *, take_over: bool, take_over_delay: timedelta
) -> ControllerOptions:
    from ocf.controllers.hpa import ControllerOptions, Mode

    chosen = Mode(mode)
    report = _print_results(output) if chosen is Mode.DRY_RUN else None
    return ControllerOptions(
        mode=chosen, settings=settings, take_over=take_over, take_over_delay=take_over_delay, report=report
    )


def _print_results(output: LogOutput) -> Callable[[DryRunResult], None]:
    def report(result: DryRunResult) -> None:
        if output is LogOutput.JSON:
            typer.echo(printable_json(json.dumps(result.as_json())))
        else:
            echo(str(result))
        sys.stdout.flush()

    return report


def _process(
    options: ControllerOptions, lease_namespace: str | None, host: str, port: int, *, elected: bool
) -> ProcessOptions:
    from ocf.controllers.hpa import NAME
    from ocf.controllers.hpa.manager import ProcessOptions
    from ocf.controllers.process import pod_namespace
    from ocf.runtime.operator import Lease, Listen, environment_tracer

    lease = Lease(NAME, lease_namespace or pod_namespace()) if elected else None
    tracer = environment_tracer(os.environ)
    return ProcessOptions(controller=options, lease=lease, listen=Listen(port, host), tracer=tracer)


async def _run(process: ProcessOptions, kubeconfig: str | None, context: str | None, output: LogOutput) -> None:
    from ocf.cli.controllers import stopped_by_signals
    from ocf.cluster.client import ApiServerCluster
    from ocf.controllers.hpa.manager import run_process

    stop = stopped_by_signals()
    async with await ApiServerCluster.connect(kubeconfig, context=context) as cluster:
        await run_process(cluster, process, stop, on_serving=lambda endpoints: _print_endpoints(endpoints, output))


def _print_endpoints(endpoints: Endpoints, output: LogOutput) -> None:
    urls = {"metrics": f"{endpoints.url}/metrics", "health": f"{endpoints.url}/healthz"}
    urls["ready"] = f"{endpoints.url}/readyz"
    line = json.dumps(urls) if output is LogOutput.JSON else f"metrics on {urls['metrics']}; Ctrl-C stops it"
    typer.echo(line, err=output is LogOutput.TEXT)


def _log(output: LogOutput) -> None:
    from ocf.runtime.monitoring import JsonFormatter, TextFormatter

    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if output is LogOutput.JSON else TextFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler])


def _print_manifests(
    options: ControllerOptions,
    namespace: str,
    image: str,
    scales: Sequence[str] | None,
    *,
    elected: bool,
    output: LogOutput,
) -> None:
    from ocf.cli.controllers import print_manifests
    from ocf.controllers.hpa import TARGETS, Installation, installation_manifests

    wanted = Installation(
        mode=options.mode,
        namespace=namespace,
        image=image,
        arguments=["run", *_arguments(options), *([] if elected else ["--no-leader-elect"]), "--output=json"],
        targets=[_scalable(text) for text in scales] if scales else TARGETS,
        leader_election=elected,
    )
    print_manifests(installation_manifests(wanted), json=output is LogOutput.JSON)


def _scalable(text: str) -> ScalableResource:
    from ocf.controllers.hpa import ScalableResource
    from ocf.errors import ConfigError

    try:
        return ScalableResource.parse(text)
    except ConfigError as error:
        raise ConfigError(f"--scales {error}") from None


def _release(features: FeatureGates) -> tuple[str | None, FeatureGates]:
    """Return the newest release with these rules, whatever its feature gates; None for the default."""
    from ocf.schema.kubernetes import RELEASES, FeatureGates

    default = FeatureGates()
    chosen = {name: getattr(features, name) for name in FEATURE_GATES.values()}
    for release, gates in [*RELEASES.items()][::-1]:
        if gates._replace(**chosen) == features and default._replace(**chosen) != features:
            return release, gates
    return None, default


def _arguments(options: ControllerOptions) -> Iterator[str]:
    """Yield the command-line options for the settings that differ from the defaults."""
    from ocf.autoscaling.algorithm import Settings
    from ocf.controllers.hpa import ControllerOptions
    from ocf.objects.durations import format_duration

    settings, defaults = options.settings, Settings()
    yield f"--mode={options.mode}"
    if options.take_over:
        yield "--take-over"
    if options.take_over_delay != ControllerOptions().take_over_delay:
        yield f"--take-over-delay={format_duration(options.take_over_delay)}"
    for name in ("sync_period", "downscale_stabilization", "cpu_initialization_period", "initial_readiness_delay"):
        if getattr(settings, name) != getattr(defaults, name):
            yield f"--{name.replace('_', '-')}={format_duration(getattr(settings, name))}"
    if settings.tolerance != defaults.tolerance:
        yield f"--tolerance={settings.tolerance:g}"
    if settings.workers != defaults.workers:
        yield f"--concurrent-syncs={settings.workers}"
    release, gates = _release(settings.features)
    if release is not None:
        yield f"--kubernetes-version={release}"
    for gate, name in FEATURE_GATES.items():
        if getattr(settings.features, name) != getattr(gates, name):
            yield f"--feature-gates={gate}={str(getattr(settings.features, name)).lower()}"
