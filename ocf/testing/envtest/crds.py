"""Defining kinds on an API server, and waiting until it serves them.

A definition that is `Established` is not served yet: for a moment its kind is not found, and then every request is
answered with 429, until the storage is ready. So what counts is that lists are answered, and that discovery, which the
server keeps on its own, names the kind and its subresources. The first creates take two seconds even then: the server
holds them back, for the sake of others beside it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from ocf.errors import ConfigError
from ocf.testing.envtest.http_probe import HttpProbe

__all__ = ["install_crds"]

_PATH: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_PAUSE: Final = 0.02  # seconds between two questions whether a kind is served
_OK, _CREATED, _CONFLICT = 200, 201, 409


def install_crds(
    door: HttpProbe,
    *definitions: Mapping[str, Any],
    seconds: float = 30.0,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], object] = time.sleep,
) -> None:
    """Define kinds, or replace their definitions, and wait until they are served.

    Args:
        door: How to get in.
        *definitions: CustomResourceDefinitions.
        seconds: How long they may take, all together.
        clock: Seconds that never go back.
        pause: Waits for so many seconds.

    Raises:
        ConfigError: If the API server refuses a definition, or does not serve its kind in time.
    """
    for definition in definitions:
        _store(door, definition)
    deadline = clock() + seconds
    for path, names in (question for definition in definitions for question in _questions(definition)):
        while problem := _problem(*door.ask("GET", path), names):
            if clock() > deadline:
                raise ConfigError(f"{path} is not served after {seconds:g} s: {problem}")
            pause(_PAUSE)


def _store(door: HttpProbe, definition: Mapping[str, Any]) -> None:
    name = definition["metadata"]["name"]
    code, answer = door.ask("POST", _PATH, definition)
    while code == _CONFLICT:  # it is there, or somebody wrote it while we did
        _, live = door.ask("GET", f"{_PATH}/{name}")
        metadata = {**definition["metadata"], "resourceVersion": live.get("metadata", {}).get("resourceVersion")}
        code, answer = door.ask("PUT", f"{_PATH}/{name}", {**definition, "metadata": metadata})
    if code not in (_OK, _CREATED):
        raise ConfigError(f"no definition {name}: {answer.get('message', f'the API server said {code}')}")


def _questions(definition: Mapping[str, Any]) -> Iterator[tuple[str, frozenset[str]]]:
    """Return the paths that must be answered, and the resources that the answer must name.

    They lead to the storage, to the cache in front of it, and to discovery.
    """
    spec = definition["spec"]
    plural = spec["names"]["plural"]
    for version in spec["versions"]:
        if version["served"]:
            group = f"/apis/{spec['group']}/{version['name']}"
            yield f"{group}/{plural}?limit=1", frozenset()
            yield f"{group}/{plural}?limit=1&resourceVersion=0", frozenset()
            yield group, frozenset({plural, *(f"{plural}/{part}" for part in version.get("subresources") or ())})


def _problem(code: int, answer: Mapping[str, Any], names: frozenset[str]) -> str:
    if code != _OK:
        return answer.get("message") or f"the API server said {code}"
    missing = names - {resource["name"] for resource in answer.get("resources") or ()}
    return f"discovery does not name {', '.join(sorted(missing))}" if missing else ""
