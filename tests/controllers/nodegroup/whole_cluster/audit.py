"""The audit log of an API server: every write, and all requests of some users, by the user who sent them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

__all__ = ["AuditLog", "Write"]

_WRITES: Final = ("create", "update", "patch", "delete", "deletecollection")


def _policy(users: Sequence[str]) -> Mapping[str, Any]:
    """Return the audit policy; the answer to a watch starts long before it is complete."""
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [
            {"level": "Metadata", "verbs": list(_WRITES), "omitStages": ["ResponseStarted"]},
            {"level": "Metadata", "users": list(users)},
            {"level": "None"},
        ],
    }


@dataclass(frozen=True, slots=True)
class Write:
    """One write.

    Args:
        user: The user.
        verb: The verb, `create`.
        resource: The resource with its subresource, `pods/eviction`.
        name: The name of the object; empty if the API server generated it.
        code: The status code of the answer.
    """

    user: str
    verb: str
    resource: str
    name: str
    code: int


class AuditLog:
    """The audit log of an API server.

    Args:
        folder: An empty folder for the policy and the log.
        users: The users whose reads are logged too.
    """

    def __init__(self, folder: Path, users: Sequence[str]) -> None:
        self._policy, self._log = folder / "policy.json", folder / "audit.log"
        self._policy.write_text(json.dumps(_policy(users)), encoding="utf-8")

    @property
    def flags(self) -> Mapping[str, str]:
        """The flags of the API server."""
        return {"audit-policy-file": str(self._policy), "audit-log-path": str(self._log)}

    def writes(self, *users: str) -> list[Write]:
        """Return the writes of users so far, but those of leases, which show only that a process lives."""
        writes = [_write(each) for each in self._entries(*users) if each["verb"] in _WRITES]
        return [each for each in writes if each.resource != "leases"]

    def rights(self, user: str) -> set[tuple[str, str, str]]:
        """Return the group, the resource with its subresource, and the verb of each request so far of a user."""
        return {
            ((each["objectRef"].get("apiGroup") or ""), _resource(each), each["verb"])
            for each in self._entries(user)
            if "objectRef" in each
        }

    def _entries(self, *users: str) -> Iterator[Mapping[str, Any]]:
        if self._log.exists():
            found = map(json.loads, self._log.read_text(encoding="utf-8").splitlines())
            yield from (each for each in found if each["user"]["username"] in users)


def _resource(entry: Mapping[str, Any]) -> str:
    about = entry.get("objectRef") or {}
    return "/".join(filter(None, (about.get("resource", ""), about.get("subresource", ""))))


def _write(entry: Mapping[str, Any]) -> Write:
    name = (entry.get("objectRef") or {}).get("name", "")
    code = (entry.get("responseStatus") or {}).get("code", 0)
    return Write(entry["user"]["username"], entry["verb"], _resource(entry), name, code)
