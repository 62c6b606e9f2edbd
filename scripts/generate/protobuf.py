"""Write the table by which the embedded API server reads and writes protobuf.

Clients written in Go send and accept built-in kinds in protobuf. Which number is which field stands in the `.proto`
files beside the Go sources of the API types; whether a field is inlined into the JSON object stands in the OpenAPI
schemas that `scripts/generate/openapi.py` has written.

    python scripts/generate/protobuf.py $GOMOD/k8s.io/api@v0.36.3 $GOMOD/k8s.io/apimachinery@v0.36.3 \
        $GOMOD/k8s.io/apiextensions-apiserver@v0.36.3 $GOMOD/k8s.io/kube-aggregator@v0.36.3

The same input gives the same bytes.
"""

import argparse
import gzip
import json
import lzma
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

Json = dict[str, Any]

FOLDER: Final = Path(__file__).parents[2] / "ocf_server" / "http"
PACKAGE: Final = re.compile(r"^package ([\w.]+);")
MESSAGE: Final = re.compile(r"^message (\w+) \{")
FIELD: Final = re.compile(r"^  (optional|repeated|map<string, ([\w.]+)>) ?(?:([\w.]+) )?(\w+) = (\d+);")
SCALARS: Final = {"string": "s", "bytes": "y", "bool": "b", "int32": "i", "int64": "i", "uint32": "i", "double": "d"}
META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
EXTENSIONS: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
SPECIAL: Final = {
    f"{META}Time": "T",
    f"{META}MicroTime": "U",
    f"{META}FieldsV1": "R",
    f"{EXTENSIONS}JSON": "R",
    f"{EXTENSIONS}JSONSchemaPropsOrArray": "O",
    f"{EXTENSIONS}JSONSchemaPropsOrBool": "O",
    f"{EXTENSIONS}JSONSchemaPropsOrStringArray": "O",
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "Q",
    "io.k8s.apimachinery.pkg.runtime.RawExtension": "R",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "X",
}
DOCUMENTS: Final = ("APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "DeleteOptions")
"""Kinds of requests and responses that the schemas list without a kind, or as one of many groups."""
UNIONS: Final = {name for name, code in SPECIAL.items() if code == "O"}
"""Types that are one thing or the other, whose fields are kept to read them."""


def read(root: Path) -> Iterator[tuple[str, Json]]:
    """Read the messages of all files below a folder: name, and field number to name and type."""
    for path in sorted(root.rglob("generated.proto")):
        package, name = "", ""
        fields: Json = {}
        for line in path.read_text().splitlines():
            if found := PACKAGE.match(line):
                package = found[1]
            elif found := MESSAGE.match(line):
                name, fields = found[1], {}
            elif line == "}" and name:
                yield _openapi_name(f"{package}.{name}"), fields
                name = ""
            elif name and (found := FIELD.match(line)):
                label, value, plain, field, number = found.groups()
                prefix = "{}" if value else "[]" if label == "repeated" else ""
                fields[number] = [field, prefix + _type(value or plain, package)]


def _openapi_name(name: str) -> str:
    module, _, rest = name.removeprefix("k8s.io.").partition(".")
    return f"io.k8s.{module.replace('_', '-')}.{rest}"


def _type(name: str, package: str) -> str:
    if name in SCALARS:
        return SCALARS[name]
    return "#" + _openapi_name(name.lstrip(".") if name.startswith(".") else f"{package}.{name}")


def build(messages: Json, schemas: Json) -> Json:
    """Return the messages that are reachable from the kinds, by short names."""
    kinds = {
        name: [kind["group"], kind["version"], kind["kind"]]
        for name, schema in schemas.items()
        for kind in schema.get("x-kubernetes-group-version-kind", ())[:1]
        if name in messages and not name.endswith("List")
    }
    kinds |= {f"{META}{name}": ["", "v1", name] for name in DOCUMENTS}
    kinds[f"{META}PartialObjectMetadata"] = ["meta.k8s.io", "v1", "PartialObjectMetadata"]
    table: Json = {}
    waiting = sorted(kinds)
    while waiting:
        name = waiting.pop()
        if _short(name) not in table:
            fields = {number: _field(name, field, messages, schemas) for number, field in messages[name].items()}
            table[_short(name)] = {number: [field, _shortened(kind)] for number, (field, kind) in fields.items()}
            waiting += [kind.partition("#")[2] for _, kind in fields.values() if "#" in kind]
            waiting += [name for name in UNIONS if name in messages and name not in table]
    names = {"/".join(filter(None, kind[:2])) + " " + kind[2]: _short(name) for name, kind in sorted(kinds.items())}
    return {"kinds": names, "messages": dict(sorted(table.items()))}


def _field(owner: str, field: list[str], messages: Json, schemas: Json) -> list[str]:
    name, kind = field
    base = kind.lstrip("[]{}")
    prefix, message = kind.removesuffix(base), base[1:]
    declared = {_plain(key): key for key in schemas.get(owner, {}).get("properties", {})}
    # A part that the schema does not know is one whose fields are the owner's own.
    own = declared.get(_plain(name), "") if declared and base.startswith("#") else declared.get(_plain(name), name)
    if message in SPECIAL:
        return [own, prefix + SPECIAL[message] + (f"#{message}" if message in UNIONS else "")]
    wrapped = [field for field, _ in messages.get(message, {}).values()] == ["items"] and message not in schemas
    return [own, f"{prefix}L{base}" if wrapped else kind]


def _plain(name: str) -> str:
    """Return a name in lower case without punctuation: `x-kubernetes-a-b` equals `xKubernetesAB`."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _short(name: str) -> str:
    return ".".join(name.split(".")[-3:])


def _shortened(kind: str) -> str:
    code, mark, name = kind.partition("#")
    return f"{code}#{_short(name)}" if mark else kind


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--output", type=Path, default=FOLDER / "protobuf.json.gz")
    arguments = parser.parse_args()
    schemas = json.loads(lzma.decompress((FOLDER / "openapi.json.xz").read_bytes()))["schemas"]
    messages = {name: fields for folder in arguments.folders for name, fields in read(folder)}
    table = build(messages, schemas)
    text = json.dumps(table, separators=(",", ":"), sort_keys=True)
    arguments.output.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))
    sys.stderr.write(
        f"{len(table['kinds'])} kinds, {len(table['messages'])} messages, {arguments.output.stat().st_size} bytes\n"
    )


if __name__ == "__main__":
    main()
