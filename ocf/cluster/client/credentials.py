"""Credentials of requests, renewed while an operator runs.

An operator runs for months, a token is valid for minutes. As by client-go, a token file is read again each minute, a
credential plugin is run again when its credentials expire, and both after an answer 401: the request that got the
answer fails, the next one has new credentials.
"""

import asyncio
import base64
import functools
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from ocf.cluster.client.exec_plugin import run_plugin
from ocf.cluster.client.rest_config import ExecConfig, RestConfig
from ocf.cluster.client.tls import ClientKeyPair
from ocf.errors import ConfigError

__all__ = ["Credential", "Credentials", "credentials_for", "describe_credentials"]

_PERIOD: Final = 60.0
_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Credential:
    """Credentials of one request; compared by identity.

    Args:
        authorization: The header `Authorization`; empty sends none.
        pair: Client certificate; None takes the one of the TLS settings.
        expires: When they have to be renewed, in seconds since the epoch; None for never.
    """

    authorization: str = field(default="", repr=False)
    pair: ClientKeyPair | None = None
    expires: float | None = None


@dataclass(slots=True)
class Credentials:
    """Keeps credentials until they expire or are rejected; concurrent requests share one renewal.

    Args:
        read: Reads new credentials.
        now: The time, in seconds since the epoch.
        keep: Whether the last credentials are used on if reading new ones fails.
        fallback: The header to use then if there are no last credentials; empty for none.
    """

    read: Callable[[], Awaitable[Credential]]
    now: Callable[[], float]
    keep: bool = False
    fallback: str = field(default="", repr=False)
    _last: Credential | None = field(default=None, init=False)
    _read_at: float = field(default=0.0, init=False)
    _rejected: bool = field(default=False, init=False)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock, init=False, repr=False)

    async def current(self) -> Credential:
        """Return the credentials of the next request."""
        if self._last is not None and self._is_valid(self._last):
            return self._last
        async with self._lock:
            if self._last is None or not self._is_valid(self._last):
                self._last = await self._renew(self._last)
                self._read_at, self._rejected = self.now(), False
            return self._last

    def reject(self, credential: Credential) -> None:
        """Renew credentials before the next request, because the server did not accept them.

        Args:
            credential: The credentials of the request; nothing happens if they are replaced already.
        """
        if credential is self._last:
            self._rejected = True

    def _is_valid(self, credential: Credential) -> bool:
        now = self.now()
        return not self._rejected and (credential.expires is None or self._read_at <= now < credential.expires)

    async def _renew(self, last: Credential | None) -> Credential:
        try:
            return await self.read()
        except ConfigError as error:
            authorization = last.authorization if last else self.fallback
            if not (self.keep and authorization):
                raise
            _log.warning("the credentials of the API client are not renewed: %s", error)
            return Credential(authorization, expires=self.now() + _PERIOD)


def credentials_for(config: RestConfig, now: Callable[[], float]) -> Credentials:
    """Choose the credentials of a connection.

    Args:
        config: The settings; the first of token, user name, client certificate, auth provider and plugin is used.
        now: The time, in seconds since the epoch.

    Returns:
        The credentials; nothing is read yet.
    """
    if config.bearer_token_file:
        fallback = f"Bearer {config.bearer_token}" if config.bearer_token else ""
        return Credentials(lambda: _from_file(config.bearer_token_file, now), now, keep=True, fallback=fallback)
    header = _static_header(config)
    if not (header or config.tls.has_certificate):
        if config.auth_provider is not None:
            return Credentials(_AuthProvider(config.auth_provider, now).read, now)
        if config.exec is not None:
            return Credentials(functools.partial(_from_plugin, config.exec), now)
    return Credentials(functools.partial(_constant, header), now)


def describe_credentials(config: RestConfig) -> str:
    """Return which credentials a connection has, without a secret, for the message of an answer that rejects them."""
    certificate = config.tls.cert_file and f" in {config.tls.cert_file}"
    # In the order of `credentials_for`.
    found = {
        f"the token in {config.bearer_token_file}": config.bearer_token_file,
        "the bearer token": config.bearer_token,
        f"the user name {config.username} with its password": config.username or config.password,
        f"the client certificate{certificate}": config.tls.has_certificate,
        "the token of the auth provider": config.auth_provider,
        f"the credentials of the plugin {config.exec and config.exec.command}": config.exec,
    }
    nothing = "a request without credentials: the kubeconfig has no user, or the user has none"
    return next((text for text, is_given in found.items() if is_given), nothing)


def _static_header(config: RestConfig) -> str:
    if config.bearer_token:
        return f"Bearer {config.bearer_token}"
    if config.username or config.password:
        return f"Basic {base64.b64encode(f'{config.username}:{config.password}'.encode()).decode()}"
    return ""


async def _constant(authorization: str) -> Credential:
    return Credential(authorization)


async def _from_file(file: str, now: Callable[[], float]) -> Credential:
    try:
        token = Path(file).read_text(encoding="utf-8").strip()  # noqa: ASYNC240 (a few bytes)
    except OSError as error:
        raise ConfigError(f"token file {file}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise ConfigError(f"token file {file} is not a text") from None
    if not token:
        raise ConfigError(f"token file {file} is empty")
    return Credential(f"Bearer {token}", expires=now() + _PERIOD)


async def _from_plugin(plugin: ExecConfig) -> Credential:
    answer = await run_plugin(plugin)
    return Credential(f"Bearer {answer.token}" if answer.token else "", answer.pair, answer.expires)


class _AuthProvider:
    """The auth providers of the official client: OpenID Connect, and Google's.

    Their loader keeps a token until it is about to expire.
    """

    def __init__(self, provider: Mapping[str, Any], now: Callable[[], float]) -> None:
        self._provider = dict(provider)
        self._now = now
        self._loader: Any = None

    async def read(self) -> Credential:
        # Imported on use: the official client is large, and only these need it. By name, so that type checkers of
        # projects that use `ocf` need not read its thousand modules.
        client = import_module("kubernetes.aio.client")
        kube_config = import_module("kubernetes.aio.config.kube_config")

        if self._loader is None:
            names = {"cluster": "provider", "user": "provider"}
            self._loader = kube_config.KubeConfigLoader(
                {
                    "current-context": "provider",
                    "contexts": [{"name": "provider", "context": names}],
                    "clusters": [{"name": "provider", "cluster": {}}],
                    "users": [{"name": "provider", "user": {"auth-provider": self._provider}}],
                }
            )
        settings = client.Configuration()
        try:
            await self._loader.load_and_set(settings)
            authorization = settings.api_key["BearerToken"]
        except Exception as error:  # noqa: BLE001 (the loader raises any error, and its messages quote tokens)
            name = self._provider.get("name")
            raise ConfigError(f"the auth provider {name!r} returned no token ({type(error).__name__})") from None
        return Credential(authorization, expires=self._now() + _PERIOD)
