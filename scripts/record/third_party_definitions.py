"""Record the definitions of the kinds of other projects that have a package in `ocf.primitives`.

    python -m scripts.record.third_party_definitions     # needs Go, which downloads the modules

The CustomResourceDefinitions are files of the projects' Go modules. They are recorded whole, in one version and without
descriptions, in `tests/primitives/recorded/definitions.jsonl.gz`, each with the module that it is from.
"""

import gzip
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ocf.objects import Manifest, load_document

__all__ = ["FILE", "MODULES", "Module"]

FILE: Final = Path(__file__).parents[2] / "tests" / "primitives" / "recorded" / "definitions.jsonl.gz"


@dataclass(frozen=True, slots=True)
class Module:
    """A Go module with definitions.

    Args:
        path: Its path and version.
        folder: The folder of the definitions in it.
        files: The files with the definitions.
    """

    path: str
    folder: str
    files: tuple[str, ...]


MODULES: Final = (
    Module("sigs.k8s.io/gateway-api@v1.3.0", "config/crd/standard", ("gateway.networking.k8s.io_httproutes.yaml",)),
    Module("github.com/kedacore/keda/v2@v2.17.2", "config/crd/bases", ("keda.sh_scaledobjects.yaml",)),
    Module("github.com/cert-manager/cert-manager@v1.21.2", "deploy/crds", ("cert-manager.io_certificates.yaml",)),
    Module(
        "github.com/prometheus-operator/prometheus-operator@v0.85.0",
        "example/prometheus-operator-crd",
        ("monitoring.coreos.com_servicemonitors.yaml", "monitoring.coreos.com_prometheusrules.yaml"),
    ),
)
_VERSIONS: Final = {"keda.sh": "v1alpha1"}


def without_descriptions(schema: Any, *, names: bool = False) -> Any:
    """Return a schema without its descriptions.

    Args:
        schema: The schema, or a part of it.
        names: Whether the keys are names of fields, one of which may be "description".
    """
    if isinstance(schema, list):
        return [without_descriptions(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if names or key != "description"}
    return {key: without_descriptions(value, names=key == "properties" and not names) for key, value in kept.items()}


def definition(path: Path, module: str) -> Manifest:
    """Return what is recorded of a definition."""
    written = load_document(path.read_text(encoding="utf-8"))
    spec = written["spec"]
    wanted = _VERSIONS.get(spec["group"], "v1")
    (version,) = (each for each in spec["versions"] if each["name"] == wanted)
    version["schema"] = without_descriptions(version["schema"])
    annotations = {
        name: text for name, text in written["metadata"].get("annotations", {}).items() if "approved" in name
    }
    metadata = {"name": written["metadata"]["name"], "annotations": {**annotations, "recorded-from": module}}
    kept = {key: spec[key] for key in ("group", "names", "scope")}
    head = {key: written[key] for key in ("apiVersion", "kind")}
    return {**head, "metadata": metadata, "spec": {**kept, "versions": [{**version, "storage": True}]}}


def downloaded(module: str) -> Path:
    """Return the folder of a module, which Go downloads if it is missing."""
    command = ["go", "mod", "download", "-json", module]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd="/")  # noqa: S603 (our own)
    return Path(json.loads(done.stdout)["Dir"])


def main() -> None:
    """Record."""
    lines = []
    for module in MODULES:
        folder = downloaded(module.path) / module.folder
        lines += [json.dumps(definition(folder / file, module.path), sort_keys=True) for file in module.files]
    FILE.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0))
    print(f"{FILE}: {len(lines)} definitions, {FILE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
