"""Record for generated situations which nodes the scheduler rejects for a pod, with its texts.

The program `oracles/scheduler` is the scheduler of a release of Kubernetes with its default profile, without an API
server; it is built first. The first situations (`--real`) are given to a real kube-scheduler beside a real API server
as well, and have to give the same.

    python -m ocf.testing.envtest
    python -m scripts.record.scheduler

The output, `tests/nodegroups/data/scheduler.jsonl.xz`, has one situation per line. An object of the API has neither
`apiVersion` nor `kind`, and an empty list is left out:

* `features`: names of what was added to plain pods and nodes
* `nodes`, `namespaces`, `claims` (PersistentVolumeClaims), `volumes` (PersistentVolumes), `classes` (StorageClasses)
* `csiNodes` (CSINodes): only in `attach_limits.jsonl.xz` beside it, whose volumes are attached to nodes with limits
* `pods`: the pods on the nodes, some of which have ended
* `pending`: the pods to schedule, each on its own: none of them takes room from another
* `answers`: one for each pending pod, in order. `nodes` has the reasons of each node by its name, empty where the pod
  fits. `message` is the text of the condition `PodScheduled` if it fits nowhere, without the part on preemption
* `real`: true if the real kube-scheduler gave the same
"""

import argparse
import json
import lzma
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from ocf.schema.kubernetes import KUBERNETES_VERSION
from scripts.oracles.scheduler.build import build_oracle
from scripts.record.scheduler_process import RealScheduler
from tests.nodegroups.attach_cases import attach_cases
from tests.nodegroups.scheduler_cases import Json, Maker

TABLE: Final = Path(__file__).parents[2] / "tests" / "nodegroups" / "data" / "scheduler.jsonl.xz"


def decide(program: Path, cases: list[Json]) -> list[list[Json]]:
    """Return the answers of the program.

    Args:
        program: The oracle.
        cases: The situations.
    """
    asked = "".join(
        json.dumps({name: part for name, part in case.items() if name != "features"}) + "\n" for case in cases
    )
    done = subprocess.run([program], input=asked, capture_output=True, text=True, check=False)  # noqa: S603 (just built)
    if done.returncode:
        raise SystemExit(done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


def compressed(rows: list[Json]) -> bytes:
    """Return rows as compressed lines; the same rows give the same bytes."""
    lines = (json.dumps(row, separators=(",", ":"), sort_keys=True) for row in rows)
    return lzma.compress("".join(f"{line}\n" for line in lines).encode(), preset=9)


def check(rows: list[Json], count: int) -> None:
    """Give situations to a real scheduler, and mark them.

    Args:
        rows: All rows.
        count: How many situations to give to it.
    """
    chosen = [row for row in rows if not any(map(waits, row.get("claims", [])))][:count]
    with RealScheduler.started() as scheduler:
        for row in chosen:
            scheduler.check(row, row["answers"])
            row["real"] = True
    print(f"{len(chosen)} situations have the same answers by kube-scheduler")


def waits(claim: Json) -> bool:
    """Return whether a claim is provisioned when its pod is scheduled, which takes a controller."""
    return not claim["spec"].get("volumeName") and claim["spec"]["storageClassName"].startswith("later")


def main() -> None:
    """Make situations, ask the scheduler, and write both down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=6000, help="how many situations; default: %(default)s")
    parser.add_argument(
        "--real", type=int, default=300, help="how many for a real kube-scheduler; default: %(default)s"
    )
    parser.add_argument("--seed", type=int, default=1, help="another seed makes other situations; default: %(default)s")
    parser.add_argument("--output", type=Path, default=TABLE, help="default: %(default)s")
    wanted = parser.parse_args()
    maker = Maker(wanted.seed)
    cases = [maker.make() for _ in range(wanted.count)]
    limits = attach_cases(500, wanted.seed)
    with tempfile.TemporaryDirectory() as folder:
        program = build_oracle(Path(folder))
        answers, limited = decide(program, cases), decide(program, limits)
    found = [{**case, "answers": each} for case, each in zip(limits, limited, strict=True)]
    wanted.output.with_name("attach_limits.jsonl.xz").write_bytes(compressed(found))
    rows: list[Json] = [{**case, "answers": found} for case, found in zip(cases, answers, strict=True)]
    check(rows, wanted.real)
    wanted.output.parent.mkdir(parents=True, exist_ok=True)
    wanted.output.write_bytes(compressed(rows))
    pods = sum(len(row["answers"]) for row in rows)
    print(f"Kubernetes {KUBERNETES_VERSION}: {len(rows)} situations with {pods} pods in {wanted.output}")


if __name__ == "__main__":
    main()
