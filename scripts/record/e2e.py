"""Run Kubernetes' own end-to-end tests of the API machinery on a real control plane and on `ocf serve`.

The control plane has no nodes, so specs that need a running pod are left out. Each spec has a process and a time limit
of its own, and on `ocf serve` a new server. It takes about twenty minutes; the first build of the tests takes as long.

    make envtest
    python -m scripts.record.e2e
    python -m scripts.record.e2e --servers embedded --focus Watchers

The output, `tests/clients/e2e.json`, has the release, and for each spec its result on both: `passed`, or the end of the
text of the failure. Specs and servers that are not selected keep their results there. The `reason` of a spec that
passes on the real server only is written by hand; it is kept as long as they differ. `seconds` is how long a spec takes
on `ocf serve`: `make test` runs the quick ones.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any, Final

from ocf.schema.kubernetes import KUBERNETES_VERSION
from ocf.testing.envtest import ControlPlane
from ocf.testing.envtest.bootstrap import MASTERS
from scripts.record.e2e_suite.servers import embedded_server
from scripts.record.e2e_suite.specs import NOT_RUN, PASSED, Outcome, names_of_specs, run_spec

RESULTS: Final = Path(__file__).parents[2] / "tests" / "clients" / "e2e.json"
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

Results = dict[str, dict[str, Any]]
"""The result of each spec on each server, how long it takes on ours, and the reason for a difference."""
Run = Callable[[Sequence[str]], Iterator[tuple[str, Outcome]]]
"""Runs specs on a server, and yields each with its result."""


def on_real_server(specs: Sequence[str]) -> Iterator[tuple[str, Outcome]]:
    """Run specs on one real control plane, one after another."""
    # Specs wait for a compaction; the default is five minutes.
    with ControlPlane(server_arguments={"etcd-compaction-interval": "1m"}) as plane, plane.controllers(*CONTROLLERS):
        kubeconfig = str(plane.kubeconfig_for("e2e", MASTERS))
        for spec in specs:
            yield spec, run_spec(kubeconfig, spec)


def on_embedded_server(specs: Sequence[str]) -> Iterator[tuple[str, Outcome]]:
    """Run specs on `ocf serve`, two at a time, each on a new server."""
    with ThreadPoolExecutor(2) as pool:
        yield from zip(specs, pool.map(on_new_embedded_server, specs), strict=True)


def on_new_embedded_server(spec: str) -> Outcome:
    """Run a spec on an `ocf serve` with all its controllers; return its result."""
    with embedded_server() as kubeconfig:
        return run_spec(kubeconfig, spec)


def merged(results: Results, server: str, spec: str, outcome: Outcome) -> Results:
    """Return results with one more; a spec that passes needs no reason.

    Example:
        >>> merged({"a": {"real": "passed", "embedded": "no", "reason": "limits"}}, "embedded", "a", Outcome("passed"))
        {'a': {'real': 'passed', 'embedded': 'passed', 'seconds': 0}}
    """
    spec_results = {**dict.fromkeys(SERVERS, NOT_RUN), **results.get(spec, {}), server: outcome.result}
    if server == "embedded":
        spec_results["seconds"] = outcome.seconds
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
        for spec, outcome in SERVERS[server](specs):
            print(f"{server}: {spec}: {outcome.result}", flush=True)
            with lock:
                known = json.loads(wanted.output.read_text(encoding="utf-8"))["specs"] if wanted.output.exists() else {}
                document = {"kubernetes": KUBERNETES_VERSION, "specs": merged(known, server, spec, outcome)}
                wanted.output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")

    with ThreadPoolExecutor() as pool:
        for running in [pool.submit(record, server) for server in wanted.servers]:
            running.result()


if __name__ == "__main__":
    main()
