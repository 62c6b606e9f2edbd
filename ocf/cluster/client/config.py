"""How to find and enter a cluster: a kubeconfig, or the service account of a pod.

The client's own loaders read both, plugins and identity providers included. They read once; an operator runs for
months, while a token from a plugin lasts for minutes. So a kubeconfig is read again, at most once a minute, when a
request is about to be sent.
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

_SECONDS: Final = 60.0  # as often as the client renews a service account's token; plugins renew 5 minutes ahead
_DEFAULT: Final = "~/.kube/config"


class Loader(Protocol):
    """What reads credentials into a configuration."""

    async def load_and_set(self, client_configuration: Configuration) -> None:
        """Read and set."""
        ...


@dataclass(slots=True)
class Refresh:
    """Reads credentials again when a minute has passed; used as the client's `refresh_api_key_hook`.

    Args:
        loader: What reads them; it keeps what has not expired.
        clock: Seconds that never go back.
    """

    loader: Loader
    clock: Callable[[], float] = time.monotonic
    _last: float = field(init=False, repr=False)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock, init=False, repr=False)

    def __post_init__(self) -> None:
        self._last = self.clock()

    async def __call__(self, configuration: Configuration) -> None:
        """Refresh the credentials of a configuration, if it is time.

        Args:
            configuration: What the client is about to use.
        """
        async with self._lock:
            if self.clock() - self._last >= _SECONDS:
                await self.loader.load_and_set(configuration)
                self._last = self.clock()


async def open_client(
    kubeconfig: str | os.PathLike[str] | None = None,
    context: str | None = None,
    *,
    environ: Mapping[str, str] = os.environ,
) -> ApiClient:
    """Open a client for the cluster that is meant.

    Args:
        kubeconfig: A kubeconfig; None takes `$KUBECONFIG`, else the service account of the pod we run in, else
            `~/.kube/config`.
        context: The context to use, which a service account has none of; None takes the current one.
        environ: The environment.

    Returns:
        A client that never retries; to be closed.

    Raises:
        ConfigError: If nothing is found, or what is found cannot be used.
    """
    settings = Configuration()
    paths = os.fspath(kubeconfig) if kubeconfig is not None else environ.get("KUBECONFIG", "")
    if not paths and context is None and "KUBERNETES_SERVICE_HOST" in environ:
        _enter_pod(settings)
    else:
        await _enter(settings, paths or _DEFAULT, context)
    # A session that trusts the environment asks it for a proxy at every request, each time in another thread.
    settings.client_session_kwargs = {"trust_env": _is_proxied(settings.host)}
    try:
        client = ApiClient(settings)
    except (OSError, ValueError) as error:
        raise ConfigError(f"the certificates for {settings.host} cannot be used: {error}") from error
    client.user_agent = f"ocf/{ocf.__version__}"
    return client


def _is_proxied(url: str) -> bool:
    """Tell whether the environment names a proxy for an address."""
    address = urlsplit(url)
    return address.scheme in getproxies() and not proxy_bypass(address.hostname or "")


def _enter_pod(settings: Configuration) -> None:
    try:
        load: Callable[..., None] = config.load_incluster_config
        load(client_configuration=settings)
    except (config.ConfigException, OSError) as error:
        raise ConfigError(f"the service account of this pod cannot be used: {error}") from error


async def _enter(settings: Configuration, paths: str, context: str | None) -> None:
    if not _exists(paths):
        raise ConfigError(f"no kubeconfig at {paths}; name one, set KUBECONFIG, or run in a pod with a service account")
    try:
        load: Callable[..., Awaitable[Loader]] = config.load_kube_config
        loader = await load(config_file=paths, context=context, client_configuration=settings, persist_config=False)
    except Exception as error:  # noqa: BLE001 (see below)
        # The loader raises whatever its plugins raise, and its messages quote whole entries, tokens included.
        known = _contexts(paths) if context else ()
        if known and context not in known:
            raise ConfigError(f"kubeconfig {paths} has no context {context!r}; there are: {', '.join(known)}") from None
        where = f", context {context!r}" if context else ""
        raise ConfigError(f"kubeconfig {paths}{where} cannot be used ({type(error).__name__})") from None
    if "exec" in (getattr(loader, "_user", None) or ()) and not (settings.api_key or settings.cert_file):
        # The loader logs the failure and goes on, and the client would never ask again.
        raise ConfigError(f"kubeconfig {paths}: the credential plugin gave nothing; the log of kubernetes.aio says why")
    settings.refresh_api_key_hook = Refresh(loader)  # type: ignore[assignment]  # declared as None, called if set


def _contexts(paths: str) -> tuple[str, ...]:
    """Return the names of the contexts; none where they cannot be read."""
    try:
        load: Callable[..., Any] = config.list_kube_config_contexts
        return tuple(sorted(str(each["name"]) for each in load(config_file=paths)[0]))
    except Exception:  # noqa: BLE001 (the loader raises whatever it meets, and another error is told already)
        return ()


def _exists(paths: str) -> bool:
    return any(Path(path).expanduser().is_file() for path in paths.split(os.pathsep) if path)
