"""Record the ticks of the real HPA controller, which the tests compare ours with.

The scenarios of `tests/controllers/hpa/comparison` run on a real control plane with the HPA controller of its
kube-controller-manager. One file per scenario records the inputs, the time and the writes of each tick. Only the
reading of the inputs is code of this project.

    python -m ocf.testing.envtest
    python -m scripts.record.hpa_ticks [SCENARIO ...]
"""

import argparse
import asyncio
from collections.abc import Sequence

from tests.controllers.hpa.comparison.running import comparison_env
from tests.controllers.hpa.comparison.scenarios import SCENARIOS
from tests.controllers.hpa.comparison.ticks import DATA, save


async def record(names: Sequence[str]) -> None:
    """Play scenarios, and write what happened.

    Args:
        names: The scenarios.
    """
    async with comparison_env() as env:
        played = await env.run(names)
    for name, rounds in played.items():
        save(DATA / f"{name}.json", [each.tick for each in rounds], env.events[name])
        print(f"{name}: {len(rounds)} ticks")


def main() -> None:
    """Read the command line, and record."""
    parser = argparse.ArgumentParser(description="Record the ticks of the real HPA controller.")
    parser.add_argument("scenario", nargs="*", choices=[[], *SCENARIOS], help="all of them unless named")
    asyncio.run(record(parser.parse_args().scenario or list(SCENARIOS)))


if __name__ == "__main__":
    main()
