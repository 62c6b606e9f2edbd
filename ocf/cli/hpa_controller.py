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
from typing import TYPE_CHECKING, Final

import click

from ocf.cli.command import Command, Number, OneOf
from ocf.cli.options import (
    context_option,
    host_option,
    image_option,
    kubeconfig_option,
    kubernetes_version_option,
    leader_elect_option,
    port_option,
    traceback_option,
)
from ocf.cli.output import echo
from ocf.objects.printable import printable_json

if TYPE_CHECKING:
    from datetime import timedelta

    from ocf.autoscaling import FeatureGates
    from ocf.autoscaling.algorithm import Settings
    from ocf.controllers.hpa import HpaControllerOptions
    from ocf.controllers.hpa.dry_run import DryRunResult
    from ocf.controllers.hpa.manager import ProcessOptions
    from ocf.controllers.hpa.manifests import ScalableResource
    from ocf.runtime.monitoring.http_server import Endpoints

__all__ = ["FEATURE_GATES", "hpa_controller"]

FEATURE_GATES: Final[Mapping[str, str]] = {
    "HPAConfigurableTolerance": "configurable_tolerance",
    "HPAGeneration": "observed_generation",
    "HPAScaleToZero": "scale_to_zero",
    "PodLevelResources": "pod_level_resources",
}
_DURATION: Final = "DURATION"
_OTHER_REQUESTS: Final = 30.0  # seconds, as other programs wait


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


@click.command(cls=Command)
@click.argument(
    "action",
    type=OneOf(ControllerAction),
    metavar="ACTION",
    default=ControllerAction.RUN,
    help="Run the controller, print its manifests, or migrate autoscalers to its kind.",
)
@click.argument("names", nargs=-1, metavar="[NAME]...", help="For migrate: the names of autoscalers.")
@click.option(
    "--mode",
    type=OneOf(ModeName),
    default=ModeName.OWN_KIND,
    help="Run HorizontalAutoscalers, replace the built-in controller, or only compare with it.",
)
@click.option(
    "--take-over", is_flag=True, help="With replace: also take over autoscalers that another controller has synced."
)
@click.option(
    "--take-over-delay",
    default="30s",
    metavar=_DURATION,
    help="With replace: how long an autoscaler is claimed before it is scaled; longer than the sync period of"
    " any controller that may still run.",
)
@click.option(
    "--sync-period",
    "--horizontal-pod-autoscaler-sync-period",
    default="15s",
    metavar=_DURATION,
    help="Time between two syncs of an autoscaler.",
)
@click.option(
    "--downscale-stabilization",
    "--horizontal-pod-autoscaler-downscale-stabilization",
    default="5m0s",
    metavar=_DURATION,
    help="How long a recommendation prevents scaling down below it.",
)
@click.option(
    "--tolerance",
    "--horizontal-pod-autoscaler-tolerance",
    type=float,
    default=0.1,
    help="Difference of a ratio from 1 that does not change the replicas.",
)
@click.option(
    "--cpu-initialization-period",
    "--horizontal-pod-autoscaler-cpu-initialization-period",
    default="5m0s",
    metavar=_DURATION,
    help="Time after its start in which a pod's cpu may be ignored.",
)
@click.option(
    "--initial-readiness-delay",
    "--horizontal-pod-autoscaler-initial-readiness-delay",
    default="30s",
    metavar=_DURATION,
    help="Time after its start in which an unready pod counts as not ready yet.",
)
@click.option(
    "--concurrent-syncs",
    "--concurrent-horizontal-pod-autoscaler-syncs",
    type=Number(),
    default=5,
    help="Number of autoscalers that are synced concurrently.",
)
@click.option(
    "--request-timeout",
    default="1m0s",
    metavar=_DURATION,
    help="How long to wait for each response of a metrics API; a later one counts as missing.",
)
@kubernetes_version_option
@click.option(
    "--feature-gates", multiple=True, metavar="NAME=BOOL", help=f"Set {', '.join(FEATURE_GATES)}; repeatable."
)
@leader_elect_option
@click.option("--sharding", is_flag=True, help="Divide the autoscalers among the replicas, by namespace.")
@click.option(
    "--lease-namespace",
    "--leader-elect-resource-namespace",
    metavar="NAME",
    help="Namespace of the Lease; default: that of the pod.",
)
@host_option
@port_option
@click.option(
    "--namespace",
    metavar="NAME",
    help="For manifests: the namespace of the controller, ocf-system by default. For migrate: that of the"
    " autoscalers, default by default.",
)
@click.option("--back", is_flag=True, help="For migrate: from the kind of the controller to HorizontalPodAutoscaler.")
@image_option
@click.option(
    "--scales",
    multiple=True,
    metavar="RESOURCE",
    help="For manifests: a resource that the controller may scale, such as rollouts.argoproj.io; repeatable."
    " Default: those of Kubernetes.",
)
@kubeconfig_option
@context_option
@click.option(
    "--output", type=OneOf(LogOutput), default=LogOutput.TEXT, help="text for people, or json with one object per line."
)
@traceback_option
def hpa_controller(  # noqa: PLR0913 (each is an option of the command line)
    action: ControllerAction,
    names: tuple[str, ...],
    *,
    mode: ModeName,
    take_over: bool,
    take_over_delay: str,
    sync_period: str,
    downscale_stabilization: str,
    tolerance: float,
    cpu_initialization_period: str,
    initial_readiness_delay: str,
    concurrent_syncs: int,
    request_timeout: str,
    kubernetes_version: str | None,
    feature_gates: tuple[str, ...],
    leader_elect: bool,
    sharding: bool,
    lease_namespace: str | None,
    host: str,
    port: int,
    namespace: str | None,
    back: bool,
    image: str,
    scales: tuple[str, ...],
    kubeconfig: str | None,
    context: str | None,
    output: LogOutput,
) -> None:
    """Run the HPA algorithm as a controller.

    It never shares a target with the built-in controller. By default it runs a kind of its own. With --mode replace it
    runs autoscaling/v2 in a cluster where the built-in controller is disabled. With --mode dry-run it only reads, and
    prints its decisions next to those of the built-in controller.

    Example:
        ocf hpa-controller manifests --mode dry-run | kubectl apply -f -
    """
    if action is ControllerAction.MIGRATE:
        _run_migration(names, namespace or "default", back=back, kubeconfig=kubeconfig, context=context)
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
        _features(kubernetes_version, feature_gates),
    )
    delay = _duration("--take-over-delay", take_over_delay)
    timeout = _period("--request-timeout", request_timeout)
    options = _options(
        mode,
        settings,
        output,
        take_over=take_over,
        take_over_delay=delay,
        request_timeout=timeout,
        sharding=sharding,
    )
    if action is ControllerAction.MANIFESTS:
        _print_manifests(options, namespace or "ocf-system", image, scales, elected=leader_elect, output=output)
        return
    process = _process(options, lease_namespace, host, port, elected=leader_elect)
    _log(output)
    from ocf.concepts.open_files import raise_open_files

    raise_open_files()
    # Longer than the reader of metrics waits, so that the response with which the API server gives up arrives.
    longest = timeout.total_seconds() + _OTHER_REQUESTS
    asyncio.run(_run(process, longest, kubeconfig, context, output))


def _run_migration(
    names: Sequence[str], namespace: str, *, back: bool, kubeconfig: str | None, context: str | None
) -> None:
    """Migrate autoscalers one after the other, and print each step."""
    from ocf.errors import ConfigError

    if not names:
        raise ConfigError("migrate needs the names of autoscalers: ocf hpa-controller migrate web --namespace shop")
    asyncio.run(_migrate(names, namespace, back=back, kubeconfig=kubeconfig, context=context))


async def _migrate(
    names: Sequence[str], namespace: str, *, back: bool, kubeconfig: str | None, context: str | None
) -> None:
    from ocf.cluster.client import ApiServerCluster
    from ocf.controllers.hpa.migration import migrate

    async with await ApiServerCluster.connect(kubeconfig, context=context) as cluster:
        for name in names:
            await migrate(cluster, name, namespace, back=back, report=echo)


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
    mode: ModeName,
    settings: Settings,
    output: LogOutput,
    *,
    take_over: bool,
    take_over_delay: timedelta,
    request_timeout: timedelta,
    sharding: bool,
) -> HpaControllerOptions:
    from ocf.controllers.hpa import HpaControllerOptions, Mode

    chosen = Mode(mode)
    report = _print_results(output) if chosen is Mode.DRY_RUN else None
    return HpaControllerOptions(
        mode=chosen,
        settings=settings,
        take_over=take_over,
        take_over_delay=take_over_delay,
        request_timeout=request_timeout,
        report=report,
        sharding=sharding,
    )


def _print_results(output: LogOutput) -> Callable[[DryRunResult], None]:
    def report(result: DryRunResult) -> None:
        if output is LogOutput.JSON:
            click.echo(printable_json(json.dumps(result.as_json())))
        else:
            echo(str(result))
        sys.stdout.flush()

    return report


def _process(
    options: HpaControllerOptions, lease_namespace: str | None, host: str, port: int, *, elected: bool
) -> ProcessOptions:
    from ocf.controllers.hpa import NAME
    from ocf.controllers.hpa.manager import ProcessOptions
    from ocf.controllers.process import pod_namespace
    from ocf.runtime.operator import Lease, Listen
    from ocf.runtime.operator.environment import environment_tracer

    lease = Lease(NAME, lease_namespace or pod_namespace()) if elected else None
    tracer = environment_tracer(os.environ)
    return ProcessOptions(controller=options, lease=lease, listen=Listen(port, host), tracer=tracer)


async def _run(
    process: ProcessOptions, longest: float, kubeconfig: str | None, context: str | None, output: LogOutput
) -> None:
    from ocf.cli.controllers import stopped_by_signals
    from ocf.cluster.client import ApiServerCluster
    from ocf.controllers.hpa.manager import run_process

    stop = stopped_by_signals()
    async with await ApiServerCluster.connect(kubeconfig, context=context, request_timeout=longest) as cluster:
        await run_process(cluster, process, stop, on_serving=lambda endpoints: _print_endpoints(endpoints, output))


def _print_endpoints(endpoints: Endpoints, output: LogOutput) -> None:
    urls = {"metrics": f"{endpoints.url}/metrics", "health": f"{endpoints.url}/healthz"}
    urls["ready"] = f"{endpoints.url}/readyz"
    line = json.dumps(urls) if output is LogOutput.JSON else f"metrics on {urls['metrics']}; Ctrl-C stops it"
    click.echo(line, err=output is LogOutput.TEXT)


def _log(output: LogOutput) -> None:
    from ocf.runtime.monitoring import JsonFormatter
    from ocf.runtime.monitoring.text_logs import TextFormatter

    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if output is LogOutput.JSON else TextFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler])


def _print_manifests(
    options: HpaControllerOptions,
    namespace: str,
    image: str,
    scales: Sequence[str],
    *,
    elected: bool,
    output: LogOutput,
) -> None:
    from ocf.cli.controllers import print_manifests
    from ocf.controllers.hpa import TARGETS
    from ocf.controllers.hpa.manifests import HpaInstallation, installation_manifests

    wanted = HpaInstallation(
        mode=options.mode,
        namespace=namespace,
        image=image,
        arguments=["run", *_arguments(options), *([] if elected else ["--no-leader-elect"]), "--output=json"],
        targets=[_scalable(text) for text in scales] if scales else TARGETS,
        leader_election=elected,
        sharding=options.sharding,
    )
    print_manifests(installation_manifests(wanted), namespace, json=output is LogOutput.JSON)


def _scalable(text: str) -> ScalableResource:
    from ocf.controllers.hpa.manifests import ScalableResource
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


def _durations(chosen: object, defaults: object, *names: str) -> Iterator[str]:
    """Yield the command-line options for the durations that differ from the defaults."""
    from ocf.objects.durations import format_duration

    for name in names:
        if getattr(chosen, name) != getattr(defaults, name):
            yield f"--{name.replace('_', '-')}={format_duration(getattr(chosen, name))}"


def _arguments(options: HpaControllerOptions) -> Iterator[str]:
    """Yield the command-line options for the settings that differ from the defaults."""
    from ocf.autoscaling.algorithm import Settings
    from ocf.controllers.hpa import HpaControllerOptions

    settings, defaults = options.settings, Settings()
    yield f"--mode={options.mode}"
    switches = {"--take-over": options.take_over, "--sharding": options.sharding}
    yield from (name for name, is_on in switches.items() if is_on)
    yield from _durations(options, HpaControllerOptions(), "take_over_delay", "request_timeout")
    periods = ("sync_period", "downscale_stabilization", "cpu_initialization_period", "initial_readiness_delay")
    yield from _durations(settings, defaults, *periods)
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
