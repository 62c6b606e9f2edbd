"""Installation of CRDs on an API server, which waits until the kinds are served.

The condition `Established` does not mean that a kind is served: requests first fail with 404, and then with 429 until
the storage is ready. Therefore this waits until lists succeed, and until discovery, which the server updates
separately, contains the kind and its subresources. Even then the first creates take two seconds, because the API server
delays them to let other API servers notice the kind.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from copy import deepcopy
from typing import Any, Final, NamedTuple

from ocf.errors import ConfigError
from ocf.testing.envtest.http_probe import HttpProbe

__all__ = ["Installed", "install_crds"]

_PATH: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_PAUSE: Final = 0.02  # seconds between two checks whether a kind is served
_OK, _CREATED, _CONFLICT = 200, 201, 409


class Installed(NamedTuple):
    """A definition on a server, and what a change of it there changes.

    Args:
        generation: Changes with its spec.
        texts: Its labels and annotations.
        ending: Whether it is being deleted.
    """

    definition: Mapping[str, Any]
    uid: str
    generation: int
    texts: tuple[Any, Any]
    ending: bool

    @classmethod
    def of(cls, definition: Mapping[str, Any], live: Mapping[str, Any]) -> Installed:
        """Return a definition as it is stored."""
        found = live.get("metadata") or {}
        texts = found.get("labels"), found.get("annotations")
        return cls(
            deepcopy(definition),
            found.get("uid", ""),
            found.get("generation", 0),
            texts,
            "deletionTimestamp" in found,
        )


def install_crds(
    probe: HttpProbe,
    *definitions: Mapping[str, Any],
    served: MutableMapping[str, Installed] | None = None,
    seconds: float = 30.0,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], object] = time.sleep,
) -> None:
    """Create or replace CRDs, and wait until the API server serves their kinds.

    Args:
        served: What was installed on the server before, by name, which is added to: a definition that was not
            changed since costs one request.
        clock: Monotonic clock in seconds.
        pause: Sleeps for a number of seconds.
    """
    known = served if served is not None else {}
    changed = [each for each in definitions if not _is_unchanged(probe, each, known.get(each["metadata"]["name"]))]
    stored = [Installed.of(definition, _store(probe, definition)) for definition in changed]
    deadline = clock() + seconds
    for path, names in (check for definition in changed for check in _checks(definition)):
        while problem := _problem(*probe.ask("GET", path), names):
            if clock() > deadline:
                raise ConfigError(f"{path} is not served after {seconds:g} s: {problem}")
            pause(_PAUSE)
    known.update({each.definition["metadata"]["name"]: each for each in stored})


def _is_unchanged(probe: HttpProbe, definition: Mapping[str, Any], before: Installed | None) -> bool:
    """Return whether a definition is on the server as it was installed, so that its kind is still served."""
    if before is None or before.definition != definition:
        return False
    code, live = probe.ask("GET", f"{_PATH}/{definition['metadata']['name']}")
    return code == _OK and Installed.of(definition, live) == before


def _store(probe: HttpProbe, definition: Mapping[str, Any]) -> Mapping[str, Any]:
    """Create or replace a definition; return it as it is stored."""
    name = definition["metadata"]["name"]
    code, answer = probe.ask("POST", _PATH, definition)
    while code == _CONFLICT:  # it exists, or another client wrote it at the same time
        _, live = probe.ask("GET", f"{_PATH}/{name}")
        metadata = {**definition["metadata"], "resourceVersion": live.get("metadata", {}).get("resourceVersion")}
        code, answer = probe.ask("PUT", f"{_PATH}/{name}", {**definition, "metadata": metadata})
    if code not in (_OK, _CREATED):
        raise ConfigError(f"CRD {name} not created: {answer.get('message', f'status code {code}')}")
    return answer


def _checks(definition: Mapping[str, Any]) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the paths that must be served, and the resources or versions of groups that the response must list.

    They check the storage, the watch cache in front of it, discovery of the version, and the list of all groups, which
    the aggregator updates last. A client that looks for kinds by that list, such as kopf, does not look again.
    """
    spec = definition["spec"]
    plural = spec["names"]["plural"]
    for version in spec["versions"]:
        if version["served"]:
            group = f"/apis/{spec['group']}/{version['name']}"
            yield f"{group}/{plural}?limit=1", frozenset()
            yield f"{group}/{plural}?limit=1&resourceVersion=0", frozenset()
            yield group, frozenset({plural, *(f"{plural}/{part}" for part in version.get("subresources") or ())})
            yield "/apis", frozenset({f"{spec['group']}/{version['name']}"})


def _problem(code: int, answer: Mapping[str, Any], names: frozenset[str]) -> str:
    if code != _OK:
        return answer.get("message") or f"status code {code}"
    versions = (version for group in answer.get("groups") or () for version in group["versions"])
    listed = {resource["name"] for resource in answer.get("resources") or ()}
    missing = names - listed - {version["groupVersion"] for version in versions}
    return f"discovery does not list {', '.join(sorted(missing))}" if missing else ""
