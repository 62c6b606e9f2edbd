r"""Generate the table of the classes that `\p{NAME}` selects in regular expressions of Go.

    python -m scripts.generate.unicode_classes

Names and code points depend on the release of Go, which should be the one that builds the pinned API server. The table,
`ocf_server/cel/unicode_classes.json.gz`, has for each class its names, and where its ranges begin and end, as
differences from the number before.
"""

import gzip
import json
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

PROGRAM: Final = Path(__file__).parents[1] / "oracles" / "unicode_classes" / "main.go"
TABLE: Final = Path(__file__).parents[2] / "ocf_server" / "cel" / "unicode_classes.json.gz"


def differences(ranges: list[int]) -> Iterator[int]:
    """Yield the first number, and then the difference of each from the number before; ends are exclusive.

    Example:
        >>> [*differences([48, 57, 65, 70])]
        [48, 10, 7, 6]
    """
    bounds = [number + index % 2 for index, number in enumerate(ranges)]
    yield from (after - before for before, after in pairwise([0, *bounds]))


def main() -> None:
    """Run the program and write the table."""
    command = ["go", "run", str(PROGRAM)]
    done = subprocess.run(command, check=True, capture_output=True)  # noqa: S603 (our own program)
    table = [[each["names"], [*differences(each["ranges"])]] for each in json.loads(done.stdout)]
    TABLE.write_bytes(gzip.compress(json.dumps(table, separators=(",", ":")).encode(), mtime=0))
    print(f"{len(table)} classes, {TABLE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
