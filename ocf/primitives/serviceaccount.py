"""The ServiceAccount (`v1`): static, ready as soon as it exists."""

from __future__ import annotations

from typing import TypeAlias

from ocf import feature
from ocf.editors import ObjectMetaEditor, ServiceAccountEditor
from ocf.lazy_types.kubernetes import V1ServiceAccount
from ocf.primitives.builder import StaticBuilder
from ocf.primitives.kind import Kind
from ocf.primitives.mutator import BaseMutator, Edits
from ocf.primitives.resource import StaticResource

__all__ = ["Builder", "Mutation", "Mutator", "Resource"]


class Mutator(BaseMutator):
    """Records edits of a service account, in this order: metadata, pull secrets, mounting of its token."""

    edit_object_metadata = Edits(ObjectMetaEditor, "metadata")
    edit_image_pull_secrets = Edits(ServiceAccountEditor, "")
    edit_automount = Edits(ServiceAccountEditor, "")

    def ensure_image_pull_secret(self, name: str) -> None:
        """Record a pull secret."""
        self.edit_image_pull_secrets(lambda account: account.ensure_image_pull_secret(name))

    def remove_image_pull_secret(self, name: str) -> None:
        """Record the removal of a pull secret."""
        self.edit_image_pull_secrets(lambda account: account.remove_image_pull_secret(name))

    def set_automount_service_account_token(self, automount: bool | None) -> None:  # noqa: FBT001 (the value is the subject)
        """Record whether a token of the account is mounted into pods; None unsets the field, which means true."""
        self.edit_automount(lambda account: account.set_automount_service_account_token(automount))


Mutation: TypeAlias = feature.Mutation[Mutator]
"""A mutation of a service account."""

Resource: TypeAlias = StaticResource["V1ServiceAccount", Mutator]
"""A service account as a resource of a component."""


class Builder(StaticBuilder[V1ServiceAccount, Mutator]):
    """Builds a service account.

    Args:
        base: The desired baseline: a `V1ServiceAccount`, a manifest, or a YAML text with one document.

    Example:
        >>> metadata = {"name": "web", "namespace": "shop"}
        >>> account = Builder({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
        >>> silent = Mutation("silent", lambda m: m.set_automount_service_account_token(False))
        >>> account.with_mutation(silent).build().render()["automountServiceAccountToken"]
        False
    """

    kind = Kind("v1", "ServiceAccount", "V1ServiceAccount", Mutator)
