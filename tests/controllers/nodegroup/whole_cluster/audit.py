"""The audit log of an API server: every write, by the user who sent it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

__all__ = ["AuditLog", "Write"]

_POLICY: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "rules": [
        {"level": "Metadata", "verbs": ["create", "update", "patch", "delete", "deletecollection"]},
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
    """

    def __init__(self, folder: Path) -> None:
        self._policy, self._log = folder / "policy.json", folder / "audit.log"
        self._policy.write_text(json.dumps(_POLICY), encoding="utf-8")

    @property
    def flags(self) -> Mapping[str, str]:
        """The flags of the API server."""
        return {"audit-policy-file": str(self._policy), "audit-log-path": str(self._log)}

    def writes(self, *users: str) -> list[Write]:
        """Return the writes of users so far, but those of leases, which show only that a process lives."""
        if not self._log.exists():
            return []
        found = map(json.loads, self._log.read_text(encoding="utf-8").splitlines())
        writes = [_write(each) for each in found]
        return [each for each in writes if each.user in users and each.resource != "leases"]


def _write(entry: Mapping[str, Any]) -> Write:
    about = entry.get("objectRef") or {}
    resource = "/".join(filter(None, (about.get("resource", ""), about.get("subresource", ""))))
    code = (entry.get("responseStatus") or {}).get("code", 0)
    return Write(entry["user"]["username"], entry["verb"], resource, about.get("name", ""), code)
