"""Generate the table of the Go structs that the API server prints in messages.

    python -m scripts.generate.structs KUBERNETES API

The arguments are the folders of the modules `k8s.io/kubernetes` and `k8s.io/api`. The API server converts objects to
internal types without JSON names before it validates them, so its messages show the names of Go fields, in the order
of the source. The table, `ocf_server/validation/structs.json.gz`, has the fields of each internal struct: name in
Go, name in manifests, type.
"""

import argparse
import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeAlias

FILE: Final = Path(__file__).parents[2] / "ocf_server" / "validation" / "structs.json.gz"
GROUPS: Final = ("core", "apps", "batch")
ROOTS: Final = (
    "DaemonSetUpdateStrategy",
    "DeploymentStrategy",
    "NodeSelectorTerm",
    "PersistentVolumeSource",
    "PodFailurePolicy",
    "PodResourceClaim",
    "PodTemplateSpec",
    "StatefulSetUpdateStrategy",
    "SuccessPolicy",
)

Fields: TypeAlias = list[tuple[str, str]]
"""Name and type of each field of a struct; the name of an embedded struct is empty."""

_STRUCT: Final = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_NAMED: Final = re.compile(r"^type (\w+) (string|map\[\w+\][\w.]+)$", re.MULTILINE)
_FIELD: Final = re.compile(
    r"^\t(?:(\w+)\s+)?([\w.*\[\]]+)(?:\s+`[^`]*json:\"([^,\"]*)[^`]*`)?\s*(?://.*)?$", re.MULTILINE
)
_SCALARS: Final = {
    "bool": "b",
    "int": "i",
    "int32": "i",
    "int64": "i",
    "string": "s",
    "types.UID": "s",
    "resource.Quantity": "q",
    "intstr.IntOrString": "x",
    "metav1.LabelSelector": "l",
    "metav1.ObjectMeta": "m",
}


def structs(text: str) -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """Yield the structs of Go source: for each field its name, its type and its JSON name."""
    for name, body in _STRUCT.findall(text):
        yield name, [match.groups(default="") for match in _FIELD.finditer(body)]  # type: ignore[misc]


def json_names(api: Path) -> dict[tuple[str, str], str]:
    """Return the names in manifests by struct and Go field."""
    found = {}
    for group in GROUPS:
        for name, fields in structs((api / group / "v1" / "types.go").read_text()):
            found.update({(name, field): shown for field, _, shown in fields if field})
    return found


def table(kubernetes: Path, api: Path) -> dict[str, list[list[str]]]:
    """Return the fields of the structs that the roots contain."""
    text = "\n".join((kubernetes / "pkg" / "apis" / group / "types.go").read_text() for group in GROUPS)
    known, named, names = dict(structs(text)), dict(_NAMED.findall(text)), json_names(api)
    found: dict[str, list[list[str]]] = {}
    waiting = list(ROOTS)
    while waiting:
        struct = waiting.pop()
        if struct in found:
            continue
        rows = found[struct] = []
        for field, kind, _ in known[struct]:
            code = _code(kind, named, known)
            rows.append([field, names.get((struct, field), "") if field else "", code])
            waiting += [code.lstrip("*[]{}")] if code.lstrip("*[]{}") in known else []
    return dict(sorted(found.items()))


def _code(kind: str, named: dict[str, str], known: dict[str, list[tuple[str, str, str]]]) -> str:
    """Return the code of a Go type: `*` a pointer, `[]` a slice, `{}` a map, then a scalar or the name of a struct."""
    kind = kind.removeprefix("api.").removeprefix("core.")
    if kind.startswith("*"):
        return f"*{_code(kind[1:], named, known)}"
    if kind.startswith("[]"):
        return f"[]{_code(kind[2:], named, known)}"
    if kind.startswith("map["):
        return f"{{}}{_code(kind.partition(']')[2], named, known)}"
    if kind in _SCALARS:
        return _SCALARS[kind]
    if kind in named:
        return _code(named[kind], named, known)
    if kind not in known:
        raise ValueError(f"{kind} is neither a scalar nor a struct of {', '.join(GROUPS)}; add it to _SCALARS")
    return kind


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kubernetes", type=Path)
    parser.add_argument("api", type=Path)
    given = parser.parse_args()
    text = json.dumps(table(given.kubernetes, given.api), separators=(",", ":"))
    FILE.write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{FILE}: {len(json.loads(text))} structs, {FILE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
