"""A service account; what can be set lies at the top of the object."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ocf.editors.pull_secrets import PullSecretsEditor

if TYPE_CHECKING:
    from kubernetes.client import V1ServiceAccount  # noqa: F401 (named in a base class, which is evaluated)

__all__ = ["ServiceAccountEditor"]


class ServiceAccountEditor(PullSecretsEditor["V1ServiceAccount"]):
    """Edits a service account.

    Source: https://kubernetes.io/docs/reference/kubernetes-api/authentication-resources/service-account-v1/.

    Args:
        raw: The live service account.

    Example:
        >>> from kubernetes.client import V1ServiceAccount
        >>> account = ServiceAccountEditor(V1ServiceAccount())
        >>> account.ensure_image_pull_secret("registry")
        >>> account.set_automount_service_account_token(False)
        >>> [secret.name for secret in account.raw.image_pull_secrets], account.raw.automount_service_account_token
        (['registry'], False)
    """

    __slots__ = ()

    def set_automount_service_account_token(self, automount: bool | None) -> None:  # noqa: FBT001 (the value is the subject)
        """Say whether pods get a token of the account.

        Args:
            automount: Whether they do, unless the pod says otherwise. None unsets the field, which means true.
        """
        self._raw.automount_service_account_token = automount
