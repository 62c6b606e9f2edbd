"""Record whole runs of the real HPA controller, which the tests compare the simulation with.

The scenarios of `tests/simulation/reality/data` run on a real control plane: etcd, the API server, the HPA controller
of kube-controller-manager, the scheduler, and kwok for nodes and pods. It takes about two and a half minutes.

    python -m ocf.testing.envtest
    python -m scripts.record.simulated_run [SCENARIO ...]
"""

import argparse
import asyncio

from ocf.testing.envtest.binaries import REMEDY, find_programs
from tests.simulation.reality.recorded import save_run
from tests.simulation.reality.running import run_all
from tests.simulation.reality.scenarios import NAMES


def main() -> None:
    """Read the command line, and record."""
    parser = argparse.ArgumentParser(description="Record whole runs of the real HPA controller.")
    parser.add_argument("scenario", nargs="*", choices=[[], *NAMES], help="all of them unless named")
    names = parser.parse_args().scenario or NAMES
    programs = find_programs()
    if programs is None:
        parser.error(f"the programs of a control plane are missing; {REMEDY} installs them")
    for name, run in asyncio.run(run_all(programs, names)).items():
        save_run(name, run)
        print(f"{name}: {len(run.syncs)} syncs, {len(run.actions)} scaling actions, one per {run.sync_period}")


if __name__ == "__main__":
    main()
