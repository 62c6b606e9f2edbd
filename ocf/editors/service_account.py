"""Editor of a service account, whose fields are at the top level of the object."""

from __future__ import annotations

from ocf.editors.pull_secrets import PullSecretsEditor
from ocf.lazy_types.kubernetes import V1ServiceAccount

__all__ = ["ServiceAccountEditor"]


class ServiceAccountEditor(PullSecretsEditor[V1ServiceAccount]):
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
        """Set whether a token of the account is mounted into pods.

        Args:
            automount: The value, which a pod can override. None unsets the field, which means true.
        """
        self._raw.automount_service_account_token = automount
