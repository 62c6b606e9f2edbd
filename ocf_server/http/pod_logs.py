"""Logs of pods: the text of an annotation, since no container runs.

Sources: pkg/registry/core/pod/rest/log.go, pkg/registry/core/pod/strategy.go (LogLocation), ValidatePodLogOptions and
the kubelet of Kubernetes 1.36.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from ocf.cluster.protocol import Cluster, ListOptions
from ocf.errors import ApiError, FieldProblem, api_error
from ocf.objects import Manifest, ObjectKey, parse_time
from ocf.objects.manifest import PREFIX
from ocf.objects.timestamps import format_time, parse_rfc3339
from ocf_server.api.status_errors import bad_request, invalid, not_found
from ocf_server.http.request import Query, integer, is_set
from ocf_server.http.responses import Response

__all__ = ["ACTIONS", "LOG", "LogOptions", "log_of", "not_run", "proxy_problem"]

LOG: Final = f"{PREFIX}/log"
"""Annotation of a pod: the text of the logs of its containers."""
ACTIONS: Final = ("attach", "exec", "portforward")
"""Subresources of a pod that need a running container."""

_OLDEST: Final = 10**9
"""Seconds."""
_CONTAINERS: Final = ("initContainers", "containers", "ephemeralContainers")
_STATUSES: Final = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")


@dataclass(frozen=True, slots=True)
class LogOptions:
    """Options of a request for a log.

    Args:
        container: The container; empty for the only one.
        previous: Whether to return the log of the container before its last restart.
        timestamps: Whether to write the time before each line.
        since: Oldest time of lines; None for all.
        tail_lines: Number of lines from the end; None for all.
        limit_bytes: Maximum number of bytes; None for all.
    """

    container: str
    previous: bool
    timestamps: bool
    since: datetime | None
    tail_lines: int | None
    limit_bytes: int | None

    @classmethod
    def read(cls, query: Query, name: str, now: datetime) -> "LogOptions":
        """Read the options.

        Args:
            now: The time of the request; aware.

        Raises:
            ApiError: If an option has an invalid value.
        """
        seconds, tail, limit = (
            integer(query, option) if option in query else None
            for option in ("sinceSeconds", "tailLines", "limitBytes")
        )
        since = _instant(query["sinceTime"]) if "sinceTime" in query else None
        problems: list[FieldProblem] = []
        if tail is not None and tail < 0:
            problems.append(FieldProblem("tailLines", f"Invalid value: {tail}: must be greater than or equal to 0"))
        if limit is not None and limit < 1:
            problems.append(FieldProblem("limitBytes", f"Invalid value: {limit}: must be greater than 0"))
        if since is not None and seconds is not None:
            detail = "Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified"
            problems.append(FieldProblem("[]", detail))
        elif seconds is not None and seconds < 1:
            problems.append(FieldProblem("sinceSeconds", f"Invalid value: {seconds}: must be greater than 0"))
        if "stream" in query:
            problems.append(FieldProblem("stream", "Forbidden: may not be specified"))
        if problems:
            raise invalid("PodLogOptions", name, problems)
        if seconds is not None:
            # No log is older than that, and an older instant may not exist in Python.
            since = now - timedelta(seconds=min(seconds, _OLDEST))
        return cls(
            container=query.get("container", ""),
            previous=is_set(query, "previous"),
            timestamps=is_set(query, "timestamps"),
            since=since,
            tail_lines=tail,
            limit_bytes=limit,
        )


def _number(query: Query, option: str) -> int | None:
    return integer(query, option) if option in query else None


def _instant(text: str) -> datetime:
    try:
        return parse_rfc3339(text)
    except ValueError as error:
        raise bad_request(str(error)) from error


def log_of(pod: Manifest, options: LogOptions) -> Response:
    """Return the response with the log of a container.

    Raises:
        ApiError: If there is no such container, it has not started, or the pod has no annotation with its log.
    """
    name = pod["metadata"]["name"]
    container = _container(pod, options.container)
    # LogLocation returns no location for a pod without a node, and the response is empty.
    if not pod["spec"].get("nodeName"):
        return Response("", code=204)
    started = _started(pod, container)
    if options.previous:
        raise bad_request(f'previous terminated container "{container}" in pod "{name}" not found')
    text = (pod["metadata"].get("annotations") or {}).get(LOG)
    if text is None:
        raise not_run(f"the log of pod {name} is not available", f"the annotation {LOG} of the pod sets its text")
    return Response(_shown(text, started, options))


async def proxy_problem(cluster: Cluster, kind: str, name: str, namespace: str) -> ApiError:
    """Return the error for a request to a pod, a node or a Service through the API server.

    Args:
        name: The name in the path, which may have a scheme before and a port after it, as in `https:web:443`.
    """
    parts = name.split(":")
    name = parts[1] if len(parts) > _WITH_PORT else parts[0]
    if kind == "Service":
        # As the resolver of a real API server does, which looks for the addresses first.
        options = ListOptions(namespace=namespace, label_selector=_OF_SERVICE)
        found = (await cluster.list("discovery.k8s.io/v1", "EndpointSlice", options)).items
        # The name in a path may be anything, and is no part of a selector.
        slices = [slice_ for slice_ in found if slice_["metadata"]["labels"][_OF_SERVICE] == name]
        if not slices:
            return not_found("services", name)
        if not any(slice_["endpoints"] for slice_ in slices):
            problem = f'no endpoints available for service "{name}"'
            return api_error(problem, code=503, reason="ServiceUnavailable")
    else:
        await cluster.get(ObjectKey("v1", kind, name, namespace))
    advice = "use a cluster with nodes for it"
    return not_run(f"proxy of {kind.lower()} {name} is not supported", advice)


_WITH_PORT: Final = 2
_OF_SERVICE: Final = "kubernetes.io/service-name"


def not_run(problem: str, advice: str) -> ApiError:
    """Return the error for a request that needs a running container.

    Args:
        problem: What cannot be done.
    """
    message = f"{problem}: no container runs in the embedded cluster; {advice}"
    return api_error(message, code=501, reason="NotImplemented")


def _container(pod: Manifest, wanted: str) -> str:
    name, spec = pod["metadata"]["name"], pod["spec"]
    names = [container["name"] for field in _CONTAINERS for container in spec.get(field) or ()]
    if wanted:
        if wanted not in names:
            raise bad_request(f"container {wanted} is not valid for pod {name}")
        return wanted
    if len(spec["containers"]) > 1:
        shown = " ".join(names)
        raise bad_request(f"a container name must be specified for pod {name}, choose one of: [{shown}]")
    only: str = spec["containers"][0]["name"]
    return only


def _started(pod: Manifest, container: str) -> datetime:
    """Return when a container started."""
    state: dict[str, Any] = {}
    for field in _STATUSES:
        for status in pod["status"].get(field) or ():
            if status["name"] == container:
                state = status.get("state") or {}
    started = (state.get("running") or state.get("terminated") or {}).get("startedAt")
    if started is None:
        reason = (state.get("waiting") or {}).get("reason") or "ContainerCreating"
        name = pod["metadata"]["name"]
        raise bad_request(f'container "{container}" in pod "{name}" is waiting to start: {reason}')
    return parse_time(started)


def _shown(text: str, started: datetime, options: LogOptions) -> str:
    """Return the part of a log that the options ask for; each line is as old as the container."""
    if options.since is not None and started < options.since:
        return ""
    lines = text.splitlines(keepends=True)
    if options.tail_lines is not None:
        lines = lines[len(lines) - min(options.tail_lines, len(lines)) :]
    prefix = f"{format_time(started)} " if options.timestamps else ""
    found = "".join(f"{prefix}{line}" for line in lines)
    # The limit may fall into a character.
    return found if options.limit_bytes is None else found.encode()[: options.limit_bytes].decode(errors="ignore")
