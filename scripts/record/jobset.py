"""Measure the controller of `examples/jobset` beside the original: `python -m scripts.record.jobset` prints the table.

Both run as processes on an embedded API server over HTTP, while JobSets are created and all their Jobs complete. The
user and the Job controller are played inside of the server; their requests are not counted. It takes about a minute and
needs the program that `make clients` builds.
"""

import asyncio
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import Any, Final, NamedTuple

from ocf.cluster import ListOptions, PatchOptions, PatchType, Subresource, Verb
from ocf.cluster.request_log import RequestLog
from ocf.objects import Manifest, ObjectKey
from ocf_server import EmbeddedCluster
from ocf_server.http import serving, write_kubeconfig
from scripts.generate.comparison import code_lines
from tests.clients import jobset
from tests.support import eventually

ROOT: Final = Path(__file__).parents[2]
SETS: Final = 50
JOBS: Final = 10
START: Final = "2026-01-01T00:00:00Z"
DONE: Final[Manifest] = {
    "startTime": START,
    "completionTime": START,
    "succeeded": 1,
    "conditions": [{"type": name, "status": "True"} for name in ("SuccessCriteriaMet", "Complete")],
}
STATUS: Final = PatchOptions(patch_type=PatchType.MERGE, field_manager="job", subresource=Subresource.STATUS)


class Measured(NamedTuple):
    """What one controller took.

    Args:
        cpu: Seconds.
        memory: The most that it has had, in MiB.
    """

    reads: int
    writes: int
    cpu: float
    memory: float


def _of_process(pid: int) -> tuple[float, float]:
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    (peak,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK"), int(peak) / 1024


async def measure(controller: Sequence[str]) -> Measured:
    """Measure one controller."""
    cluster = EmbeddedCluster(namespaces=["lab"])
    others = copy(cluster)
    others.requests = RequestLog()
    await others.create(jobset.definition(), field_manager="user")
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}
    replicated = {"name": "work", "replicas": JOBS, "template": {"spec": {"template": {"spec": pod}}}}
    spec = {
        "replicatedJobs": [replicated],
        "successPolicy": {"operator": "All"},
        "network": {"enableDNSHostnames": True},
    }

    async def found(api_version: str, kind: str) -> list[Any]:
        return list((await others.list(api_version, kind, ListOptions(namespace="lab"))).items)

    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder, "kubeconfig")
        async with serving(cluster) as server:
            write_kubeconfig(server.kubeconfig(), kubeconfig)
            async with jobset.running(controller, kubeconfig, Path(folder, "log")) as pid:
                cluster.requests.clear()
                before, _ = _of_process(pid)
                for number in range(SETS):
                    metadata = {"name": f"set-{number}", "namespace": "lab"}
                    manifest = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": metadata}
                    await others.create({**manifest, "spec": spec}, field_manager="user")
                jobs = await eventually(lambda: found("batch/v1", "Job"), lambda jobs: len(jobs) == SETS * JOBS)
                for one in jobs:
                    await others.patch(ObjectKey.of(one), {"status": DONE}, STATUS)

                def are_done(sets: list[Any]) -> bool:
                    return all(one.get("status", {}).get("terminalState") == "Completed" for one in sets)

                await eventually(lambda: found("jobset.x-k8s.io/v1alpha2", "JobSet"), are_done)
                sent = [one for one in cluster.requests if one.verb not in {Verb.WATCH, Verb.LIST}]
                cpu, memory = _of_process(pid)
    reads = sum(one.verb.is_read for one in sent)
    return Measured(reads, len(sent) - reads, cpu - before, memory)


def _lines(files: Sequence[Path]) -> int:
    # The licence of each file in Go is a block of comments.
    texts = {path: re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL) for path in files}
    return sum(code_lines(text, path.suffix) for path, text in texts.items())


async def main() -> int:
    """Print the table."""
    source = jobset.original_sources()
    ours, original = [await measure(each) for each in (jobset.OURS, jobset.ORIGINAL)]
    rows: dict[str, tuple[object, object]] = {
        "lines of code of the controller": (_lines(sorted((ROOT / "examples/jobset").glob("*.py"))), _lines(source)),
        "requests: reads": (ours.reads, original.reads),
        "requests: writes": (ours.writes, original.writes),
        "CPU, seconds": (f"{ours.cpu:.1f}", f"{original.cpu:.1f}"),
        "memory, MiB": (f"{ours.memory:.0f}", f"{original.memory:.0f}"),
    }
    sys.stdout.writelines(f"| {name} | {' | '.join(map(str, cells))} |\n" for name, cells in rows.items())
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
