"""Settings of the configured cluster: a kubeconfig, or the service account of a pod."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ocf.cluster.client.kubeconfig import read_kubeconfig
from ocf.cluster.client.rest_config import RestConfig, TlsConfig
from ocf.errors import ConfigError

__all__ = ["load_config"]

_DEFAULT_KUBECONFIG: Final = "~/.kube/config"
_SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def load_config(
    kubeconfig: str | os.PathLike[str] | None = None,
    context: str | None = None,
    *,
    environ: Mapping[str, str] = os.environ,
    account: Path = _SERVICE_ACCOUNT,
) -> RestConfig:
    """Read the settings of the configured cluster.

    Args:
        kubeconfig: A kubeconfig; None takes `$KUBECONFIG`, else the service account of the pod, else `~/.kube/config`.
        context: The context of the kubeconfig to use; None takes the current one. A service account has no contexts.
        environ: The environment variables.
        account: The folder with the files of the service account.

    Returns:
        The settings.

    Raises:
        ConfigError: If no configuration is found, or the configuration cannot be used.
    """
    paths = os.fspath(kubeconfig) if kubeconfig is not None else environ.get("KUBECONFIG", "")
    if not paths and context is None and "KUBERNETES_SERVICE_HOST" in environ:
        return _service_account(environ, account)
    return read_kubeconfig(paths or _DEFAULT_KUBECONFIG, context)


def _service_account(environ: Mapping[str, str], account: Path) -> RestConfig:
    host, port = environ["KUBERNETES_SERVICE_HOST"], environ.get("KUBERNETES_SERVICE_PORT", "")
    token, authorities = account / "token", account / "ca.crt"
    missing = [str(file) for file in (token, authorities) if not file.is_file()]
    problem = f"no {' and no '.join(missing)}" if missing else "" if host and port else "no address in the environment"
    if problem:
        raise ConfigError(f"the service account of this pod cannot be used: {problem}")
    return RestConfig(
        host=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        tls=TlsConfig(ca_file=str(authorities)),
        bearer_token_file=str(token),
    )
