r"""Record how a real API server reads HPAs of autoscaling/v1, for `tests/autoscaling/api/test_v1_corpus.py`.

    python -m scripts.record.hpa_v1 https://127.0.0.1:16443 TOKEN

Each object is created in autoscaling/v1 in a namespace of its own, and read in both versions. A row has what was sent,
the status, and the causes of a rejection or the two objects.
"""

import argparse
import http.client
import json
import lzma
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Final

from scripts.record.hpa_corpus import Server
from scripts.record.hpa_v1_cases import Json, cases

OUTPUT: Final = Path(__file__).parents[2] / "tests" / "autoscaling" / "api" / "data" / "hpa_v1.json.xz"
NAMESPACE: Final = "hpa-v1"


def path_of(version: str, name: str = "") -> str:
    """Return the path of HPAs in a version, or of one."""
    path = f"/apis/autoscaling/{version}/namespaces/{NAMESPACE}/horizontalpodautoscalers"
    return f"{path}/{name}" if name else path


def ask(server: Server, name: str, case: Json) -> tuple[int, Any]:
    """Create an object; return the status, and the causes or the object in both versions."""
    kind = {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler"}
    metadata = {"name": name, "annotations": case["annotations"]}
    status, answer = server.send("POST", path_of("v1"), {**kind, "metadata": metadata, "spec": case["spec"]})
    if status != http.client.CREATED:
        causes = answer.get("details", {}).get("causes", [])
        return status, [[cause.get("field", ""), cause.get("message", "")] for cause in causes]
    found = {}
    for version in ("v1", "v2"):
        shown = server.send("GET", path_of(version, name))[1]
        found[version] = {"annotations": shown["metadata"].get("annotations", {}), "spec": shown["spec"]}
    return status, found


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("token")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()
    server = Server(arguments.url, arguments.token)
    server.send("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    rows = [[case["annotations"], case["spec"], *ask(server, f"c{at}", case)] for at, case in enumerate(cases())]
    table = {
        "kubernetes": server.send("GET", "/version")[1]["gitVersion"],
        "columns": ["annotations", "spec", "status", "answer"],
        "rows": rows,
    }
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(table, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    arguments.output.write_bytes(lzma.compress(text.encode(errors="surrogatepass"), preset=9 | lzma.PRESET_EXTREME))
    sys.stderr.write(f"{len(rows)} rows, {arguments.output.stat().st_size} bytes; {Counter(row[2] for row in rows)}\n")


if __name__ == "__main__":
    main()
