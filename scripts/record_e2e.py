"""Run Kubernetes' own end-to-end tests of the API machinery on a real control plane and on `ocf serve`.

The control plane has no nodes, so specs that need a running pod are left out. Each spec has a process and a time limit
of its own, and on `ocf serve` a new server. It takes about twenty minutes; the first build of the tests takes as long.

    make envtest
    python -m scripts.record_e2e
    python -m scripts.record_e2e --servers embedded --focus Watchers

The output, `tests/clients/e2e.json`, has the release, and for each spec its result on both: `passed`, or the end of the
text of the failure. Specs and servers that are not selected keep their results there. The `reason` of a spec that
passes on the real server only is written by hand; it is kept as long as they differ.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, Final
from urllib.request import Request, urlopen

from ocf.schema.kubernetes import KUBERNETES_VERSION
from ocf.testing.envtest import ControlPlane
from ocf.testing.envtest.bootstrap import MASTERS
from scripts.e2e_suite.specs import NOT_RUN, PASSED, names_of_specs, run_spec

RESULTS: Final = Path(__file__).parents[1] / "tests" / "clients" / "e2e.json"
AREAS: Final = (
    "AggregatedDiscovery",
    "API Streaming",
    "CBOR",
    "client-go should negotiate",
    "CRDValidationRatcheting",
    "CustomResourceDefinition",
    "CustomResourcePublishOpenAPI",
    "CustomResourceValidationRules",
    "Discovery",
    "FieldValidation",
    "Garbage collector",
    "MutatingAdmissionPolicy",
    "OpenAPIV3",
    "server version",
    "ServerSideApply",
    "Servers with support for",
    "ValidatingAdmissionPolicy",
    "Watchers",
)
CONTROLLERS: Final = (
    "clusterrole-aggregation-controller",
    "cronjob-controller",
    "deployment-controller",
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "replicaset-controller",
    "replicationcontroller-controller",
    "serviceaccount-controller",
    "validatingadmissionpolicy-status-controller",
)
COMPACTION: Final = 10.0  # seconds

Results = dict[str, dict[str, str]]
"""The result of each spec on each server, and the reason for a difference."""
Run = Callable[[Sequence[str]], Iterator[tuple[str, str]]]
"""Runs specs on a server, and yields each with its result."""


def on_real_server(specs: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Run specs on one real control plane, one after another."""
    # Specs wait for a compaction; the default is five minutes.
    with ControlPlane(server_arguments={"etcd-compaction-interval": "1m"}) as plane, plane.controllers(*CONTROLLERS):
        kubeconfig = str(plane.kubeconfig_for("e2e", MASTERS))
        for spec in specs:
            yield spec, run_spec(kubeconfig, spec)


def on_embedded_server(specs: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Run specs on `ocf serve`, two at a time, each on a new server."""
    with ThreadPoolExecutor(2) as pool:
        yield from zip(specs, pool.map(on_new_embedded_server, specs), strict=True)


def on_new_embedded_server(spec: str) -> str:
    """Run a spec on an `ocf serve` with all its controllers; return its result."""
    ocf = Path(sys.executable).with_name("ocf")
    command = [str(ocf), "serve", "--controllers", "all", "--output", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:  # noqa: S603 (our own command)
        try:
            assert server.stdout is not None  # noqa: S101 (it was opened with a pipe)
            place = json.loads(server.stdout.readline())
            with compacting(place["url"]):
                return run_spec(place["kubeconfig"], spec)
        finally:
            server.terminate()


@contextmanager
def compacting(url: str) -> Iterator[None]:
    """Write an object and compact the history at intervals, as the leases and the compactor of a real cluster do."""
    stop = Event()

    def send(path: str, method: str, body: Any) -> None:
        headers = {"Content-Type": "application/merge-patch+json"}
        request = Request(f"{url}{path}", json.dumps(body).encode(), headers, method=method)  # noqa: S310 (loopback)
        urlopen(request).close()  # noqa: S310 (loopback)

    def repeat() -> None:
        count = 0
        while not stop.wait(COMPACTION):
            count += 1
            send("/api/v1/namespaces/kube-public", "PATCH", {"metadata": {"annotations": {"count": str(count)}}})
            if count % 3 == 0:
                send("/ocf/compact", "POST", {})

    thread = Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def merged(results: Results, server: str, spec: str, result: str) -> Results:
    """Return results with one more; a spec that passes needs no reason.

    Example:
        >>> merged({"a": {"real": "passed", "embedded": "no", "reason": "limits"}}, "embedded", "a", "passed")
        {'a': {'real': 'passed', 'embedded': 'passed'}}
    """
    spec_results = {**dict.fromkeys(SERVERS, NOT_RUN), **results.get(spec, {}), server: result}
    if spec_results["embedded"] == PASSED:
        spec_results.pop("reason", None)
    return dict(sorted({**results, spec: spec_results}.items()))


SERVERS: Final[dict[str, Run]] = {"real": on_real_server, "embedded": on_embedded_server}


def main() -> None:
    """Run the specs and write the results, each as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", nargs="+", choices=SERVERS, default=[*SERVERS], help="default: both")
    parser.add_argument("--focus", default=rf"\[sig-api-machinery\] ({'|'.join(AREAS)})", help="default: %(default)s")
    parser.add_argument("--output", type=Path, default=RESULTS, help="default: %(default)s")
    wanted = parser.parse_args()
    specs = names_of_specs(wanted.focus)
    lock = Lock()

    def record(server: str) -> None:
        for spec, result in SERVERS[server](specs):
            print(f"{server}: {spec}: {result}", flush=True)
            with lock:
                known = json.loads(wanted.output.read_text(encoding="utf-8"))["specs"] if wanted.output.exists() else {}
                document = {"kubernetes": KUBERNETES_VERSION, "specs": merged(known, server, spec, result)}
                wanted.output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")

    with ThreadPoolExecutor() as pool:
        for running in [pool.submit(record, server) for server in wanted.servers]:
            running.result()


if __name__ == "__main__":
    main()
