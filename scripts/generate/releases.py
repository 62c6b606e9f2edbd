"""Write what the releases of Kubernetes differ in: since when kinds and fields are served, and their feature gates.

The fields are those of the samples of `testdata` in k8s.io/api, which have every field of every kind, and of the Go
types of definitions. The gates are those of the tables of k8s.io/kubernetes and its libraries; for 1.34 and 1.35 those
of later and earlier releases, which have the history of each gate. Which gates need others is that of the newest one.

    python -m scripts.generate.releases

The modules come from the Go module proxy. The same versions give the same bytes. A new release has a row in `PATCHES`.
"""

import gzip
import json
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from scripts.generate.schema import GoTypes

Json = dict[str, Any]

SCHEMA: Final = Path(__file__).parents[2] / "ocf" / "schema"
PATCHES: Final = {"1.30": 14, "1.31": 14, "1.32": 13, "1.33": 13, "1.34": 13, "1.35": 10, "1.36": 3}
"""The patch of each release whose modules are read."""
_KUBERNETES: Final = {"1.34": ("1.33", "1.36"), "1.35": ("1.33", "1.36")}
"""The releases of k8s.io/kubernetes with the gates of a release, where that module cannot be had."""
_DEFINITIONS: Final = "io.k8s.apiextensions-apiserver"
_GATE_FILES: Final = {
    "kubernetes": ("pkg/features",),
    "apiserver": ("pkg/features",),
    "client-go": ("features",),
    "controller-manager": ("pkg/features",),
    "apiextensions-apiserver": ("pkg/features",),
    "component-base": ("logs/api/v1", "metrics/features", "zpages/features"),
}
_CONSTANT: Final = re.compile(r'^\s*(\w+)\s+(?:(?:featuregate\.)?Feature\s*)?=\s*"(\w+)"', re.MULTILINE)
_ENTRY: Final = re.compile(r"^(\t{1,2})(?:\w+\.)?(\w+): *\{(\n.*?\n\1\}|[^\n]+)", re.MULTILINE | re.DOTALL)
_STATE: Final = re.compile(r"\{?[^{}]*Default:[^{}]*")
_RELEASE: Final = re.compile(r'version\.MustParse\("([\d.]+)"\)')
_NEEDS: Final = re.compile(r"^var defaultKubernetesFeatureGateDependencies = .*?^\}", re.MULTILINE | re.DOTALL)
_NEED: Final = re.compile(r"^\t(?:\w+\.)?(\w+): +\{([^}]+)\}", re.MULTILINE)
_NAME_IN_GO: Final = re.compile(r"(?:\w+\.)?(\w+)\)?(?:, |$)")
_STAGE: Final = re.compile(r"PreRelease:\s*(?:featuregate\.)?(\w+)")


@cache
def _module(name: str, release: str) -> Path:
    """Return the folder of a module of a release, after its download."""
    version = f"v{'1' if name == 'kubernetes' else '0'}.{release.partition('.')[2]}.{PATCHES[release]}"
    command = ["go", "mod", "download", "-json", f"k8s.io/{name}@{version}"]
    found = subprocess.run(command, check=True, capture_output=True, cwd="/").stdout  # noqa: S603 (our own)
    return Path(json.loads(found)["Dir"])


def _walk(value: Any, expression: Any, types: Json, seen: dict[str, set[str]]) -> None:
    if isinstance(expression, str):
        if expression.startswith("#"):
            _struct(value, expression[1:], types, seen)
    elif "l" in expression:
        for item in value:
            _walk(item, expression["l"], types, seen)
    elif "o" in expression:
        for item in value.values():
            _walk(item, expression["o"], types, seen)
    else:
        _struct(value, expression["r"][1:], types, seen)


def _struct(value: Json, name: str, types: Json, seen: dict[str, set[str]]) -> None:
    fields = types[name]["f"]
    known = seen.setdefault(name, set())
    for key, item in value.items():
        if key in fields:
            known.add(key)
            field = fields[key]
            _walk(item, field[0] if isinstance(field, list) else field, types, seen)


def _seen(release: str, table: Json) -> tuple[set[str], dict[str, set[str]]]:
    """Return the kinds and fields of a release, of those that the table has."""
    kinds: set[str] = set()
    fields: dict[str, set[str]] = {}
    for group, version, kind, *_, name, _short, _categories in table["kinds"]:
        sample = _module("api", release) / "testdata" / "HEAD" / f"{group or 'core'}.{version}.{kind}.json"
        if sample.exists():
            kinds.add(f"{group}/{version}/{kind}")
            _struct(json.loads(sample.read_text()), name, table["types"], fields)
    types = GoTypes({_DEFINITIONS: _module("apiextensions-apiserver", release)})
    for name, entry in table["types"].items():
        if name.startswith("apiextensions."):
            long = f"{_DEFINITIONS}.pkg.apis.{name}"
            fields[name] = {key for key in entry["f"] if types.field(long, key) is not None}
    return kinds, fields


def _since(table: Json) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """Return the first release of each kind, and of each field of a struct, that not every release has."""
    kinds: dict[str, str] = {}
    fields: dict[str, dict[str, str]] = {}
    releases = [(release, *_seen(release, table)) for release in PATCHES]
    for (_, before, fields_before), (release, now, fields_now) in pairwise(releases):
        kinds |= dict.fromkeys(now - before, release)
        for name in fields_now.keys() & fields_before.keys():
            for key in fields_now[name] - fields_before[name]:
                fields.setdefault(name, {})[key] = release
    return dict(sorted(kinds.items())), {name: dict(sorted(fields[name].items())) for name in sorted(fields)}


def _order(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


def _sources(release: str) -> Iterator[str]:
    for module, folders in _GATE_FILES.items():
        for each in _KUBERNETES.get(release, (release,)) if module == "kubernetes" else (release,):
            for folder in folders:
                for path in sorted((_module(module, each) / folder).glob("*.go")):
                    if not path.name.endswith("_test.go"):
                        yield path.read_text()


def _gates(release: str) -> dict[str, str]:
    """Return the gates of a release: a letter of the stage, `+` if it is on, `!` if it cannot be changed."""
    sources = list(_sources(release))
    names = {constant: text for source in sources for constant, text in _CONSTANT.findall(source)}
    found: dict[str, str] = {}
    for source in sources:
        for _, constant, body in _ENTRY.findall(source):
            states = [state for state in _states(body) if _order(state[0]) <= _order(release)]
            if states and constant in names:
                found[names[constant]] = max(states, key=lambda state: _order(state[0]))[1]
    return found


def _needs(release: str) -> dict[str, list[str]]:
    """Return the gates that a gate needs."""
    sources = list(_sources(release))
    names = {constant: text for source in sources for constant, text in _CONSTANT.findall(source)}
    (table,) = (found[0] for source in sources if (found := _NEEDS.search(source)))
    needs = {names[gate]: [names[one] for one in _NAME_IN_GO.findall(listed)] for gate, listed in _NEED.findall(table)}
    return dict(sorted(needs.items()))


def _states(body: str) -> Iterator[tuple[str, str]]:
    for state in _STATE.findall(body):
        version, stage = _RELEASE.search(state), _STAGE.search(state)
        text = (stage[1][0].lower() if stage else "g") + ("+" if "Default: true" in state else "")
        yield version[1] if version else "0", text + ("!" if "LockToDefault: true" in state else "")


def _history(by_release: Iterable[tuple[str, Mapping[str, str]]]) -> dict[str, dict[str, str]]:
    """Return the states of each gate by the release since which it has them; empty after its removal."""
    found: dict[str, dict[str, str]] = {}
    for release, gates in by_release:
        for name in {*gates, *found}:
            states = found.setdefault(name, {})
            if gates.get(name, "") != (next(reversed(states.values())) if states else ""):
                states[release] = gates.get(name, "")
    return dict(sorted(found.items()))


def main() -> None:
    """Write the table."""
    table = json.loads(gzip.decompress((SCHEMA / "builtin.json.gz").read_bytes()))
    kinds, fields = _since(table)
    gates = _history((release, _gates(release)) for release in PATCHES)
    needs = _needs(list(PATCHES)[-1])
    text = json.dumps({"kinds": kinds, "fields": fields, "gates": gates, "needs": needs}, separators=(",", ":"))
    (SCHEMA / "releases.json.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    print(f"{len(kinds)} kinds, {sum(map(len, fields.values()))} fields and {len(gates)} gates")


if __name__ == "__main__":
    main()
