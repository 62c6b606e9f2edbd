"""Regenerate and record everything that depends on the release of Kubernetes, from Kubernetes' own programs and source.

    make envtest
    make kubernetes

The release is `KUBERNETES_VERSION` in `ocf/schema/kubernetes.py`. The steps, in order, each with what it writes:

* `schema`: the table of built-in kinds, `ocf/schema/builtin.json.gz`
* `openapi`: discovery and OpenAPI of the embedded server, `ocf_server/http/{served.json.gz,openapi.json.xz}`
* `system_objects`: the objects that it begins with, `ocf_server/registry/system_objects.json.gz`
* `protobuf`: its table of protobuf fields, `ocf_server/http/protobuf.json.gz`
* `structs`: the Go structs that messages show, `ocf_server/validation/structs.json.gz`
* `characters`: the classes of characters of Go's regular expressions, `ocf_server/cel/unicode_classes.json.gz`
* `http`: responses over HTTP, `tests/ocf_server/http/recorded`
* `corpus`: validation of HPAs, `tests/autoscaling/{validation,api}/data`
* `sequences`: admission policies, expressions, statuses, and versions of custom kinds,
  `tests/ocf_server/sequences/recorded`
* `schemas`: pruning, defaulting and validation by drawn schemas, `tests/ocf_server/apiextensions/recorded`
* `definitions`: definitions, drawn and of other projects, with objects, `tests/ocf_server/corpus/recorded`
* `types`: types of drawn expressions, `tests/ocf_server/cel/recorded`
* `validation`: verdicts on valid and invalid objects of built-in kinds, `tests/ocf_server/validation/recorded`
* `decisions`: decisions of the HPA controller's own package, by minor release,
  `tests/autoscaling/algorithm/data/decisions.jsonl.xz`
* `syncs`: syncs of the real kube-controller-manager, `tests/controllers/hpa/comparison/data`
* `controllers`: states of the other controllers at rest, `tests/ocf_server/controllers/comparison/states.jsonl.gz`
* `scheduling`: decisions of the scheduler, `tests/nodegroups/data/scheduler.jsonl.xz`

The same release gives the same bytes for the first six; the others record times and random names. `make test` then
compares: what fails is what the release changed.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ocf.schema.kubernetes import KUBERNETES_VERSION
from ocf.testing.envtest import ControlPlane
from ocf.testing.envtest.binaries import Program, find_programs
from ocf.testing.envtest.startup import free_port
from scripts.record.sequences import SETS

ROOT: Final = Path(__file__).parents[1]
TOKEN: Final = "record"  # noqa: S105 (of a throw-away server on loopback)
STAGED: Final = ("api", "apimachinery", "apiextensions-apiserver", "kube-aggregator")


@dataclass(frozen=True)
class Servers:
    """Three API servers on one etcd, as the scripts need them.

    Args:
        url: Address of the server with all defaults.
        lenient: Address of one without the admission plugin `NamespaceLifecycle`.
        gated: Address of one like it with `HPAScaleToZero` on and `HPAConfigurableTolerance` off.
        etcd: Address of etcd, without TLS.
    """

    url: str
    lenient: str
    gated: str
    etcd: str


@contextmanager
def started() -> Iterator[Servers]:
    """Run etcd and the API servers until the block ends."""
    programs = find_programs(os.environ)
    if programs is None:
        sys.exit("no programs of a control plane: run `make envtest` first")
    with tempfile.TemporaryDirectory() as folder:
        tokens = Path(folder) / "tokens.csv"
        tokens.write_text(f"{TOKEN},recorder,recorder,system:masters\n", encoding="utf-8")
        etcd, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        flags = {
            "data-dir": f"{folder}/etcd",
            "listen-client-urls": etcd,
            "advertise-client-urls": etcd,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": f"default={peer}",
            "log-level": "fatal",
        }
        command = [str(programs.path(Program.ETCD)), *(f"--{name}={value}" for name, value in flags.items())]
        server = {
            "etcd-servers": etcd,
            "etcd-cafile": None,
            "etcd-certfile": None,
            "etcd-keyfile": None,
            "token-auth-file": str(tokens),
        }
        lenient = {**server, "disable-admission-plugins": "NamespaceLifecycle,ServiceAccount"}
        gates = {"HPAScaleToZero": True, "HPAConfigurableTolerance": False}
        with (
            subprocess.Popen(command) as running,  # noqa: S603 (our own command)
            ControlPlane(server_arguments=server) as plane,
            ControlPlane(server_arguments=lenient) as without_lifecycle,
            ControlPlane(server_arguments=lenient, feature_gates=gates) as gated,
        ):
            try:
                yield Servers(plane.url, without_lifecycle.url, gated.url, etcd)
            finally:
                running.terminate()


def run(*command: str | Path) -> None:
    """Run a program in the checkout; it prints for itself."""
    subprocess.run([str(word) for word in command], check=True, cwd=ROOT)  # noqa: S603 (our own commands)


def script(name: str, *words: str | Path) -> None:
    """Run one of our scripts."""
    run(sys.executable, "-m", f"scripts.{name}", *words)


def sources() -> dict[str, Path]:
    """Download the Go modules of the API types; return the folder of each."""
    version = f"v0.{KUBERNETES_VERSION.removeprefix('1.')}"
    return modules(*(f"k8s.io/{name}@{version}" for name in STAGED))


def modules(*versions: str) -> dict[str, Path]:
    """Download Go modules; return the folder of each by its path."""
    done = subprocess.run(["go", "mod", "download", "-json", *versions], check=True, capture_output=True, text=True)  # noqa: S603, S607 (Go of this machine)
    decoder, text, found = json.JSONDecoder(), done.stdout.strip(), dict[str, Path]()
    while text:
        module, end = decoder.raw_decode(text)
        found[module["Path"]] = Path(module["Dir"])
        text = text[end:].strip()
    return found


def schema(servers: Servers) -> None:
    """Generate the table of built-in kinds."""
    folders = sources().items()
    places = [f"--go={'.'.join(['io.k8s', path.removeprefix('k8s.io/')])}={folder}" for path, folder in folders]
    script("generate.schema", servers.url, TOKEN, *places)


def openapi(servers: Servers) -> None:
    """Generate discovery and OpenAPI."""
    script("generate.openapi", servers.url, TOKEN)


def system_objects(_: Servers) -> None:
    """Generate the objects that the embedded server begins with."""
    script("generate.system_objects")


def protobuf(_: Servers) -> None:
    """Generate the table of protobuf fields."""
    script("generate.protobuf", *sources().values())


def structs(_: Servers) -> None:
    """Generate the table of the Go structs that messages show."""
    kubernetes = modules(f"k8s.io/kubernetes@v{KUBERNETES_VERSION}")["k8s.io/kubernetes"]
    script("generate.structs", kubernetes, sources()["k8s.io/api"])


def characters(_: Servers) -> None:
    """Generate the table of the classes of characters of regular expressions."""
    script("generate.unicode_classes")


def http(servers: Servers) -> None:
    """Record responses over HTTP."""
    script("record.http_responses", servers.url, TOKEN)
    script("record.protobuf", servers.url, TOKEN)
    script("record.exchanges", servers.url, TOKEN)


def corpus(servers: Servers) -> None:
    """Record the validation of HPAs."""
    script("record.hpa_corpus", servers.lenient, TOKEN, "--gated", servers.gated, "--etcd", servers.etcd)
    script("record.hpa_v1", servers.lenient, TOKEN)
    script("record.kubectl_verdicts")


def sequences(_: Servers) -> None:
    """Record sequences of requests, each set on a server of its own."""
    for name in SETS:
        script("record.sequences", name)


def schemas(_: Servers) -> None:
    """Record pruning, defaulting and validation by schemas."""
    script("record.structural")


def definitions(_: Servers) -> None:
    """Record answers about definitions and their objects."""
    script("record.corpus")


def types(_: Servers) -> None:
    """Record the types of expressions."""
    script("record.expression_types")


def validation(_: Servers) -> None:
    """Record verdicts on objects of built-in kinds, on an API server with the embedded one's range of cluster IPs."""
    script("record.validation")


def decisions(_: Servers) -> None:
    """Build the controller's package of each minor release, and record what it decides."""
    script("record.hpa_decisions")


def syncs(_: Servers) -> None:
    """Record syncs of the real controller, and whole runs."""
    script("record.hpa_ticks")
    script("record.simulated_run")


def controllers(_: Servers) -> None:
    """Record the states that the controllers of workloads come to."""
    script("record.controllers")


def scheduling(_: Servers) -> None:
    """Build the scheduler's package, record what it decides, and compare some of it with the real scheduler."""
    script("record.scheduler")


STEPS: Final[dict[str, Callable[[Servers], None]]] = {
    step.__name__: step
    for step in (
        schema,
        openapi,
        system_objects,
        protobuf,
        structs,
        characters,
        http,
        sequences,
        schemas,
        definitions,
        types,
        corpus,
        validation,
        decisions,
        syncs,
        controllers,
        scheduling,
    )
}


def main() -> None:
    """Run the steps that the command line names, all of them by default."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=STEPS, default=list(STEPS), help="default: all steps")
    chosen = parser.parse_args().only
    with started() as servers:
        for number, name in enumerate(chosen, start=1):
            print(f"Kubernetes {KUBERNETES_VERSION}: step {number} of {len(chosen)}, {name}", flush=True)
            STEPS[name](servers)


if __name__ == "__main__":
    main()
