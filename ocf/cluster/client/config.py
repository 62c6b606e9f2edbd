"""Client configuration: a kubeconfig, or the service account of a pod.

The client's own loaders read both, including credential plugins and identity providers. They read once, but an operator
runs for months, and a token from a plugin is valid for minutes. So a kubeconfig is read again, at most once a minute,
before a request is sent.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from kubernetes.aio import config
from kubernetes.aio.client import ApiClient, Configuration

import ocf
from ocf.errors import ConfigError

__all__ = ["Refresh", "open_client"]

_REFRESH_SECONDS: Final = 60.0  # as often as the client renews a service account's token; plugins renew 5 minutes ahead
_DEFAULT_KUBECONFIG: Final = "~/.kube/config"


class Loader(Protocol):
    """Loader of credentials into a configuration."""

    async def load_and_set(self, client_configuration: Configuration) -> None:
        """Read the credentials and set them in the configuration."""
        ...


@dataclass(slots=True)
class Refresh:
    """Reads credentials again once a minute; used as the `refresh_api_key_hook` of the client.

    Args:
        loader: Reads the credentials; it keeps those that have not expired.
        clock: A monotonic clock, in seconds.
    """

    loader: Loader
    clock: Callable[[], float] = time.monotonic
    _last: float = field(init=False, repr=False)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock, init=False, repr=False)

    def __post_init__(self) -> None:
        self._last = self.clock()

    async def __call__(self, configuration: Configuration) -> None:
        """Refresh the credentials of a configuration, if a minute has passed.

        Args:
            configuration: The configuration of the client.
        """
        async with self._lock:
            if self.clock() - self._last >= _REFRESH_SECONDS:
                await self.loader.load_and_set(configuration)
                self._last = self.clock()


async def open_client(
    kubeconfig: str | os.PathLike[str] | None = None,
    context: str | None = None,
    *,
    environ: Mapping[str, str] = os.environ,
) -> ApiClient:
    """Open a client of the configured cluster.

    Args:
        kubeconfig: A kubeconfig; None takes `$KUBECONFIG`, else the service account of the pod, else `~/.kube/config`.
        context: The context of the kubeconfig to use; None takes the current one. A service account has no contexts.
        environ: The environment variables.

    Returns:
        A client that never retries; the caller closes it.

    Raises:
        ConfigError: If no configuration is found, or the configuration cannot be used.
    """
    settings = Configuration()
    paths = os.fspath(kubeconfig) if kubeconfig is not None else environ.get("KUBECONFIG", "")
    if not paths and context is None and "KUBERNETES_SERVICE_HOST" in environ:
        _load_service_account(settings)
    else:
        await _load_kubeconfig(settings, paths or _DEFAULT_KUBECONFIG, context)
    # A session with trust_env looks up the proxy for every request, each time in another thread.
    settings.client_session_kwargs = {"trust_env": _is_proxied(settings.host)}
    try:
        client = ApiClient(settings)
    except (OSError, ValueError) as error:
        raise ConfigError(f"the certificates for {settings.host} cannot be used: {error}") from error
    client.user_agent = f"ocf/{ocf.__version__}"
    return client


def _is_proxied(url: str) -> bool:
    """Return whether the environment sets a proxy for an address."""
    address = urlsplit(url)
    return address.scheme in getproxies() and not proxy_bypass(address.hostname or "")


def _load_service_account(settings: Configuration) -> None:
    try:
        load: Callable[..., None] = config.load_incluster_config
        load(client_configuration=settings)
    except (config.ConfigException, OSError) as error:
        raise ConfigError(f"the service account of this pod cannot be used: {error}") from error


async def _load_kubeconfig(settings: Configuration, paths: str, context: str | None) -> None:
    if not _exists(paths):
        raise ConfigError(f"no kubeconfig at {paths}; name one, set KUBECONFIG, or run in a pod with a service account")
    try:
        load: Callable[..., Awaitable[Loader]] = config.load_kube_config
        loader = await load(config_file=paths, context=context, client_configuration=settings, persist_config=False)
    except Exception as error:  # noqa: BLE001 (see below)
        # The loader raises any error of its plugins, and its messages quote whole entries, tokens included.
        known = _contexts(paths) if context else ()
        if known and context not in known:
            raise ConfigError(f"kubeconfig {paths} has no context {context!r}; there are: {', '.join(known)}") from None
        where = f", context {context!r}" if context else ""
        raise ConfigError(f"kubeconfig {paths}{where} cannot be used ({type(error).__name__})") from None
    if "exec" in (getattr(loader, "_user", None) or ()) and not (settings.api_key or settings.cert_file):
        # The loader logs the failure and continues, and the client would never try again.
        raise ConfigError(
            f"kubeconfig {paths}: the credential plugin returned no credentials; see the log of kubernetes.aio"
        )
    settings.refresh_api_key_hook = Refresh(loader)  # type: ignore[assignment]  # declared as None, called if set


def _contexts(paths: str) -> tuple[str, ...]:
    """Return the names of the contexts; an empty tuple if they cannot be read."""
    try:
        load: Callable[..., Any] = config.list_kube_config_contexts
        return tuple(sorted(str(each["name"]) for each in load(config_file=paths)[0]))
    except Exception:  # noqa: BLE001 (the loader raises any error, and the caller already reports another one)
        return ()


def _exists(paths: str) -> bool:
    return any(Path(path).expanduser().is_file() for path in paths.split(os.pathsep) if path)
