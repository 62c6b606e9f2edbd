"""Record what kubectl applies of odd files, for `tests/cli/validate/test_kubectl_verdicts.py`.

    python -m scripts.record.kubectl_verdicts

Each file of the table is given to `kubectl apply --dry-run=server` on a real API server. A row has its name, its bytes,
and of each autoscaler the name, `maxReplicas`, annotations and labels; null if kubectl fails. There is no row with keys
that are equal as texts and of different types, such as `1` and `'1'`: which one kubectl takes differs between runs.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from ocf.schema.kubernetes import KUBERNETES_VERSION
from ocf.testing.envtest.binaries import Program
from ocf.testing.envtest.controlplane import ControlPlane

TABLE: Final = Path(__file__).parents[2] / "tests" / "cli" / "validate" / "data" / "kubectl_verdicts.json"


def applied(kubectl: Path, kubeconfig: Path, file: Path) -> list[Any] | None:
    """Return what kubectl applies of a file; None if it fails."""
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "HOME": str(file.parent), "KUBERC": "off"}
    command: list[str | Path] = [kubectl, "apply", "--dry-run=server", "-o", "json", "-f", file]
    done = subprocess.run(command, env=environment, capture_output=True, check=False)  # noqa: S603 (a program of ours)
    if done.returncode:
        return None
    found = json.loads(done.stdout.decode())
    return of_autoscalers(found["items"] if found["kind"] == "List" else [found])


def of_autoscalers(manifests: list[Any]) -> list[Any]:
    """Return what a row has of the autoscalers in a list of objects."""
    found = []
    for each in manifests:
        if each["kind"] == "HorizontalPodAutoscaler":
            metadata = each["metadata"]
            notes = metadata.get("annotations", {}).items()
            kept = {name: text for name, text in notes if not name.startswith("kubectl.kubernetes.io/")}
            found.append([metadata["name"], each["spec"]["maxReplicas"], kept, metadata.get("labels", {})])
    return found


def main() -> None:
    """Run."""
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    rows = []
    with ControlPlane() as plane, tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "hpa.yaml")
        for name, text, _ in table["rows"]:
            file.write_bytes(text.encode("latin-1"))
            rows.append([name, text, applied(plane.programs.path(Program.KUBECTL), plane.kubeconfig, file)])
    lines = ",\n".join(map(json.dumps, rows))
    head = f'"kubectl": "v{KUBERNETES_VERSION}",\n"columns": {json.dumps(table["columns"])}'
    TABLE.write_text(f'{{\n{head},\n"rows": [\n{lines}\n]\n}}\n', encoding="utf-8")
    sys.stderr.write(
        f"{len(rows)} rows, {sum(row != old for row, old in zip(rows, table['rows'], strict=True))} changed\n"
    )


if __name__ == "__main__":
    main()
