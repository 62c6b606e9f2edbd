"""Record what the validators of operator-sdk find in bundles for OLM.

    python -m scripts.record.olm

Builds the program in `scripts/oracles/olm` with Go, runs it on the bundles of `tests/manifests/bundles.py`, and writes
`tests/manifests/recorded/olm.json`: for each bundle the digest of its files and the findings. A test compares the
digests, so a change of a bundle asks for a new record.
"""

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from tests.manifests.bundles import BUNDLES, RECORDED, digest, files

ORACLE: Final = Path(__file__).parents[1] / "oracles" / "olm"


def main() -> None:
    """Build the program, validate every bundle, and write the findings."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "olm_oracle")
        subprocess.run(["go", "build", "-buildvcs=false", "-o", str(program), "."], cwd=ORACLE, check=True)  # noqa: S603, S607 (go, of PATH)
        places = [Path(folder, name) for name in BUNDLES]
        for name, place in zip(BUNDLES, places, strict=True):
            for path, text in files(name).items():
                (place / path).parent.mkdir(parents=True, exist_ok=True)
                (place / path).write_text(text, encoding="utf-8")
        done = subprocess.run([program, *places], capture_output=True, text=True, check=False)  # noqa: S603 (just built)
        if done.returncode:
            raise SystemExit(done.stderr)
    found = zip(BUNDLES, json.loads(done.stdout), strict=True)
    record = {name: {"digest": digest(files(name)), "findings": findings} for name, findings in found}
    RECORDED.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
