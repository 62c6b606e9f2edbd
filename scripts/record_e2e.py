"""Run Kubernetes' own end-to-end tests of the API machinery on a real control plane and on `ocf serve`.

The control plane has no nodes, so specs that need a running pod are left out. Both run at the same time; it takes about
fifteen minutes, and the first build of the tests takes as long.

    make envtest
    python -m scripts.record_e2e

The output, `tests/clients/e2e.json`, has the release, and for each spec its result on both: `passed`, or the end of the
text of the failure.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final
from urllib.request import Request, urlopen

from ocf.schema.kubernetes import KUBERNETES_VERSION
from ocf.testing.envtest import ControlPlane
from ocf.testing.envtest.binaries import Program, find_programs
from ocf.testing.envtest.bootstrap import MASTERS
from scripts.e2e_suite.build import build_suite

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
NEED_PODS: Final = (
    "AdmissionWebhook",
    "CustomResourceConversionWebhook",
    "CustomResourceFieldSelectors",
    "sample-apiserver",
    "Aggregated APIServer",
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
LONGEST: Final = 300  # characters of a failure
COMPACTION: Final = 10.0  # seconds


def run(kubeconfig: str | Path, focus: str) -> dict[str, str]:
    """Run the specs on one server.

    Args:
        kubeconfig: Its kubeconfig.
        focus: A regular expression that selects specs.

    Returns:
        The result of each spec.
    """
    programs = find_programs()
    assert programs is not None  # noqa: S101 (the control plane has started)
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        flags = {
            "delete-namespace": "false",
            "dump-logs-on-failure": "false",
            "e2e-verify-service-account": "false",
            "ginkgo.focus": focus,
            "ginkgo.json-report": str(report),
            "ginkgo.no-color": "true",
            "ginkgo.silence-skips": "true",
            "ginkgo.skip": "|".join(NEED_PODS),
            "kubeconfig": str(kubeconfig),
            "kubectl-path": str(programs.path(Program.KUBECTL)),
            "provider": "local",
        }
        command = [str(build_suite()), *(f"-{name}={value}" for name, value in flags.items())]
        subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=False)  # noqa: S603 (just built)
        return results(json.loads(report.read_text(encoding="utf-8")))


def results(suites: list[Any]) -> dict[str, str]:
    """Return the result of each spec that ran, from a report of Ginkgo.

    Example:
        >>> spec = {"LeafNodeType": "It", "ContainerHierarchyTexts": ["Watchers"], "LeafNodeText": "work"}
        >>> results([{"SpecReports": [{**spec, "State": "passed"}]}])
        {'Watchers work': 'passed'}
    """
    found = {}
    for spec in suites[0]["SpecReports"]:
        if spec["LeafNodeType"] == "It" and spec["State"] != "skipped":
            name = " ".join([*spec["ContainerHierarchyTexts"], spec["LeafNodeText"]])
            message = " ".join(spec.get("Failure", {}).get("Message", "").split())[-LONGEST:]
            found[name] = spec["State"] if spec["State"] == "passed" else message or spec["State"]
    return found


def on_real_server(focus: str) -> dict[str, str]:
    """Run the specs on a real control plane."""
    # Specs wait for a compaction; the default is five minutes.
    with ControlPlane(server_arguments={"etcd-compaction-interval": "1m"}) as plane, plane.controllers(*CONTROLLERS):
        return run(plane.kubeconfig_for("e2e", MASTERS), focus)


def on_embedded_server(focus: str) -> dict[str, str]:
    """Run the specs on `ocf serve` with all its controllers."""
    ocf = Path(sys.executable).with_name("ocf")
    command = [str(ocf), "serve", "--controllers", "all", "--output", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:  # noqa: S603 (our own command)
        try:
            assert server.stdout is not None  # noqa: S101 (it was opened with a pipe)
            place = json.loads(server.stdout.readline())
            with compacting(place["url"]):
                return run(place["kubeconfig"], focus)
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


def main() -> None:
    """Run the specs and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--focus", default=rf"\[sig-api-machinery\] ({'|'.join(AREAS)})", help="default: %(default)s")
    parser.add_argument("--output", type=Path, default=RESULTS, help="default: %(default)s")
    wanted = parser.parse_args()
    build_suite()
    servers: dict[str, Callable[[str], dict[str, str]]] = {"real": on_real_server, "embedded": on_embedded_server}
    with ThreadPoolExecutor() as pool:
        running = {name: pool.submit(server, wanted.focus) for name, server in servers.items()}
        found = {name: future.result() for name, future in running.items()}
    specs = {
        spec: {name: found[name].get(spec, "not run") for name in servers}
        for spec in sorted({*found["real"], *found["embedded"]})
    }
    document = {"kubernetes": KUBERNETES_VERSION, "specs": specs}
    wanted.output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    passed = [spec for spec, each in specs.items() if each["real"] == "passed"]
    same = sum(specs[spec]["embedded"] == "passed" for spec in passed)
    print(
        f"Kubernetes {KUBERNETES_VERSION}: {same} of {len(passed)} specs that pass on a real server pass on ocf serve"
    )


if __name__ == "__main__":
    main()
