"""Write the manifests that the operator says itself: `python -m examples.memcached.deploy`."""

from pathlib import Path
from typing import Final

from examples.memcached.deploy import generated
from ocf.objects import dump_document

BASE: Final = Path(__file__).parent / "base"
NOTE: Final = "# Written by `python -m examples.memcached.deploy`, from what the operator says.\n"

if __name__ == "__main__":
    for name, manifests in generated().items():
        text = "---\n".join(dump_document(manifest) for manifest in manifests)
        (BASE / name).write_text(NOTE + text, encoding="utf-8")
