"""Record for workloads the nodes that Karpenter adds and, after a fall of the load, those that it keeps.

The program `oracles/karpenter` is Karpenter's own scheduling and disruption with its kwok provider, without a cluster.
It is built first, runs each workload several times, as Karpenter iterates over maps, and prints the best run.

    python -m scripts.record.karpenter

The output, `tests/nodegroups/data/karpenter.jsonl.xz`, has one workload per line:

* `name`
* `types`: the instance types; `prices` are per hour, by zone
* `pools`: NodePools, all with on-demand capacity of all types, consolidation without delay, and a budget of 100 %
* `daemonSets`, `budgets`: DaemonSets and PodDisruptionBudgets
* `nodes`: the nodes that exist before, with the names of their pods
* `pods`: equal pods with their names; `kept` names those that remain after the load has fallen
* `version`: the release of Karpenter
* `allocatable`: what pods can request on a node of each type
* `up`: what there is once Karpenter has added nodes for the pods: `nodes` (those from before, too), the names of the
  pods that are `waiting`, and the `seconds` that it took to decide
* `down`: what is left of it after the fall, once its disruption finds nothing more to do, with the `commands` it took
"""

import argparse
import json
import lzma
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from scripts.oracles.karpenter.build import KARPENTER, build_oracle
from tests.nodegroups.karpenter.parts import Json
from tests.nodegroups.karpenter.workloads import MAKERS, make

TABLE: Final = Path(__file__).parents[2] / "tests" / "nodegroups" / "data" / "karpenter.jsonl.xz"


def answer(program: Path, workloads: list[Json], runs: int) -> list[Json]:
    """Return the answers of the program.

    Args:
        program: The oracle.
        workloads: The workloads.
        runs: How often each is run.
    """
    asked = "".join(json.dumps(each) + "\n" for each in workloads)
    done = subprocess.run([program, str(runs)], input=asked, capture_output=True, text=True, check=False)  # noqa: S603 (just built)
    if done.returncode:
        raise SystemExit(done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


def price(outcome: Json) -> float:
    """Return the price of all nodes per hour."""
    return float(sum(each["price"] for each in outcome["nodes"]))


def main() -> None:
    """Make the workloads, run Karpenter on them, and write both down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="how often each workload is run; default: %(default)s")
    parser.add_argument("--output", type=Path, default=TABLE, help="default: %(default)s")
    wanted = parser.parse_args()
    workloads = [make(name) for name in MAKERS]
    with tempfile.TemporaryDirectory() as folder:
        answers = answer(build_oracle(Path(folder)), workloads, wanted.runs)
    rows: list[Json] = [
        {**each, "version": KARPENTER.version, **found} for each, found in zip(workloads, answers, strict=True)
    ]
    lines = (json.dumps(row, separators=(",", ":"), sort_keys=True) for row in rows)
    wanted.output.write_bytes(lzma.compress("".join(f"{line}\n" for line in lines).encode(), preset=9))
    for row in rows:
        up, down = row["up"], row["down"]
        print(
            f"{row['name']:20} {price(up):8.3f} per hour, {len(up['nodes']):3} nodes, {len(up['waiting'])} waiting; "
            f"then {price(down):8.3f}, {len(down['nodes']):3}, {len(down['waiting'])}"
        )


if __name__ == "__main__":
    main()
