"""Record the verdicts of a real API server on valid and invalid built-in objects.

    make envtest
    python -m scripts.record.validation            # all kinds
    python -m scripts.record.validation Service    # some

The objects are drawn from the tables in `scripts/record/validation_cases`, and the answers are written to
`tests/ocf_server/validation/recorded`, one file for each kind. All requests are dry runs, except those that create the
objects that updates start from.
"""

import argparse
import asyncio
import importlib
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from ocf.cluster import Cluster
from ocf.schema.kubernetes import KUBERNETES_VERSION
from ocf.testing.envtest import ControlPlane
from scripts.record.validation_cases.table import Table, cases
from tests.ocf_server.validation.corpus import Answer, Case, Corpus, NotApplicableError, create_stored, send

FLAGS: Final = {
    "service-cluster-ip-range": "10.96.0.0/12",
    "disable-admission-plugins": "DefaultTolerationSeconds,Priority,RuntimeClass,ServiceAccount",
}
"""The range of cluster IPs of the embedded API server, which has no admission plugins that change pods."""


def tables() -> Iterator[Table]:
    """Yield the tables of all modules."""
    for module in sorted((Path(__file__).parent / "validation_cases").glob("*.py")):
        found: Sequence[Table] = getattr(
            importlib.import_module(f"scripts.record.validation_cases.{module.stem}"), "TABLES", ()
        )
        yield from found


async def record(cluster: Cluster, table: Table) -> Corpus:
    """Send the cases of a table; return them with the answers."""
    corpus = Corpus(KUBERNETES_VERSION, table.kind, table.bases, table.stored, [])
    stored = await create_stored(cluster, table.stored)
    rows: list[tuple[Case, Answer]] = []
    for case in cases(table):
        try:
            rows.append((case, await send(cluster, corpus, case, stored)))
        except NotApplicableError as error:
            sys.exit(f"{table.kind}: {case} does not fit the stored object: {error}")
    return Corpus(KUBERNETES_VERSION, table.kind, table.bases, table.stored, rows)


async def record_all(chosen: Sequence[Table]) -> None:
    """Record tables on an API server of their own, and write the files."""
    total = Counter[int]()
    async with ControlPlane(server_arguments=FLAGS) as plane, await plane.cluster() as cluster:
        for table in chosen:
            corpus = await record(cluster, table)
            for case, answer in corpus.rows:
                if not case.edits and answer.message:
                    sys.exit(f"{table.kind}: {case.base} is not valid: {answer.message}")
            statuses = Counter(answer.status for _, answer in corpus.rows)
            print(f"{table.kind}: {len(corpus.rows)} cases, {dict(statuses)}", flush=True)
            total += statuses
            corpus.save()
    print(f"{total.total()} cases, {dict(total)}")


def main() -> None:
    """Run."""
    known = {table.kind: table for table in tables()}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", choices=[*known, []], metavar="KIND", help="default: all kinds")
    chosen = parser.parse_args().kinds or list(known)
    asyncio.run(record_all([known[kind] for kind in chosen]))


if __name__ == "__main__":
    main()
