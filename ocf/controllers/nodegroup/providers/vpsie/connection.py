"""Requests to the VPSie API: tokens, envelopes and errors.

An error may arrive with status 200: the envelope `{error, code, message, data}` decides, and `error` may be a bool or
a text. No request is repeated, except once after a 401 with a new token: whether a failed write may be repeated is
known to the caller only.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any, Final

import aiohttp

from ocf.concepts import Clock, SystemClock
from ocf.controllers.nodegroup.providers.vpsie.settings import VPSieSettings
from ocf.errors import (
    CapacityExhaustedError,
    ConfigError,
    MachineNotFoundError,
    ProviderError,
    ProviderRefusedError,
    ProviderUnavailableError,
)
from ocf.objects import parse_time

__all__ = ["Credentials", "VPSieConnection"]

# As the public client does: an hour where the response has no valid time, and a renewal five minutes before the end.
_ASSUMED_LIFETIME: Final = timedelta(hours=1)
_RENEWED_BEFORE: Final = timedelta(minutes=5)
_MOST_SHOWN: Final = 300


@dataclass(frozen=True, slots=True)
class Credentials:
    """Credentials of the VPSie API: a fixed token, or an id and a secret with which tokens are requested.

    Args:
        token: A fixed token; it is used if it is not empty.
        client_id: Id of the API client.
        client_secret: Secret of the API client.

    Raises:
        ConfigError: If neither a token nor both of the others are given.
    """

    token: str = field(default="", repr=False)
    client_id: str = ""
    client_secret: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if not self.token and not (self.client_id and self.client_secret):
            raise ConfigError("the credentials need a token, or a client id and a client secret")


@dataclass(frozen=True, slots=True)
class _Token:
    credentials: Credentials
    headers: Mapping[str, str]
    renew_at: datetime | None


class VPSieConnection:
    """Sends requests to the VPSie API.

    Args:
        settings: Where and how to call it.
        credentials: Returns the credentials; it is called before every request, so that a rotated Secret is used at
            once. It may raise `ProviderError`.
        clock: Gives the time, for the expiry of tokens.

    Attributes:
        settings: The settings.

    Example:
        >>> async def credentials() -> Credentials:
        ...     return Credentials(token="…")
        >>> async def offers(datacenter: str) -> object:
        ...     connection = VPSieConnection(VPSieSettings("b2f0", (datacenter,)), credentials)
        ...     try:
        ...         return await connection.send("POST", "/k8s/offers", body={"dcIdentifier": datacenter})
        ...     finally:
        ...         await connection.close()
    """

    def __init__(
        self,
        settings: VPSieSettings,
        credentials: Callable[[], Awaitable[Credentials]],
        *,
        clock: Clock | None = None,
    ) -> None:
        self.settings = settings
        self._credentials = credentials
        self._clock = clock or SystemClock()
        self._session: aiohttp.ClientSession | None = None
        self._token: _Token | None = None
        self._renewing = asyncio.Lock()

    async def send(self, method: str, path: str, *, body: object = None) -> Any:
        """Send a request and return the `data` of the response.

        Args:
            method: HTTP method.
            path: Path below the base URL.
            body: JSON body; None sends none.

        Returns:
            The `data` of the envelope; the whole response if it has no envelope.

        Raises:
            MachineNotFoundError: If the response is 404, as status or in the envelope.
            CapacityExhaustedError: If the message says that a size is sold out.
            ProviderRefusedError: If a retry cannot help.
            ProviderUnavailableError: If there is no answer, or a retry may help.
        """
        token = await self._authenticated()
        status, answer, headers = await self._request(method, path, headers=token.headers, body=body)
        if _code(status, answer) == HTTPStatus.UNAUTHORIZED:
            async with self._renewing:
                # Another request may have replaced the token while this one waited for its answer.
                if self._token is token:
                    self._token = None
            token = await self._authenticated()
            status, answer, headers = await self._request(method, path, headers=token.headers, body=body)
        self._raise_for(f"{method} {path}", status, answer, headers)
        return answer["data"] if isinstance(answer, dict) and "data" in answer else answer

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    async def _authenticated(self) -> _Token:
        """Return a token for the credentials as of now; concurrent callers share one request."""
        credentials = await self._credentials()
        async with self._renewing:
            token = self._token
            if token is None or token.credentials != credentials or self._is_expiring(token):
                token = self._token = await self._new_token(credentials)
        return token

    def _is_expiring(self, token: _Token) -> bool:
        return token.renew_at is not None and self._clock.now() >= token.renew_at

    async def _new_token(self, credentials: Credentials) -> _Token:
        if credentials.token:
            header = self.settings.token_header
            scheme = "Bearer " if header.lower() == "authorization" else ""
            return _Token(credentials, {header: scheme + credentials.token}, None)
        path = self.settings.paths.token
        form = {"clientId": credentials.client_id, "clientSecret": credentials.client_secret}
        status, answer, headers = await self._request("POST", path, form=form)
        self._raise_for(f"POST {path}", status, answer, headers)
        access = answer.get("accessToken") if isinstance(answer, dict) else None
        if not isinstance(access, dict) or not isinstance(access.get("token"), str) or not access["token"]:
            raise ProviderUnavailableError(f"POST {path}: the response has no accessToken.token")
        renew_at = self._expiry(access.get("expires")) - _RENEWED_BEFORE
        return _Token(credentials, {"Authorization": f"Bearer {access['token']}"}, renew_at)

    def _expiry(self, expires: object) -> datetime:
        try:
            return parse_time(str(expires))
        except ValueError:
            return self._clock.now() + _ASSUMED_LIFETIME

    async def _request(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: object = None,
        form: Mapping[str, str] | None = None,
    ) -> tuple[int, Any, Mapping[str, str]]:
        """Return the status, the decoded body and the headers of the response; None for a body that is not JSON."""
        if self._session is None:
            timeout = aiohttp.ClientTimeout(total=self.settings.timeout.total_seconds())
            self._session = aiohttp.ClientSession(timeout=timeout, trust_env=True)
        url = self.settings.base_url + path
        try:
            # A redirect would send the token to another host, and a POST as a GET.
            async with self._session.request(
                method, url, headers=headers, json=body, data=form, allow_redirects=False
            ) as response:
                raw = await response.read()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise ProviderUnavailableError(f"{method} {path}: no answer: {type(error).__name__}") from error
        try:
            answer = json.loads(raw) if raw else {}
        except ValueError:
            answer = None
        return response.status, answer, response.headers

    def _raise_for(self, request: str, status: int, answer: object, headers: Mapping[str, str]) -> None:
        """Raise the error of a response that reports one, as its status or in its envelope."""
        code = _code(status, answer)
        if answer is None and code < HTTPStatus.MULTIPLE_CHOICES:
            raise ProviderUnavailableError(f"{request}: HTTP {status}, but the response is not JSON")
        if code < HTTPStatus.MULTIPLE_CHOICES:
            return
        message = _message(answer)
        text = f"{request}: {code}: {message or 'no message'}"
        kind, wait = self._class_of(code, message.lower()), _retry_after(headers)
        if kind is ProviderUnavailableError:
            # Any other of these codes may come from a gateway, while the request goes on behind it.
            refused = code == HTTPStatus.TOO_MANY_REQUESTS
            raise ProviderUnavailableError(text, retry_after=wait, had_no_effect=refused)
        raise kind(text, retry_after=wait)

    def _class_of(self, code: int, message: str) -> type[ProviderError]:
        # Texts before codes: limits and quotas come with various codes, or none.
        if any(part in message for part in self.settings.exhausted_texts):
            return CapacityExhaustedError
        if any(part in message for part in self.settings.refused_texts):
            return ProviderRefusedError
        # An error in the envelope of a 200 often has no code, so the text decides as well.
        if code == HTTPStatus.NOT_FOUND or "not found" in message:
            return MachineNotFoundError
        retried = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS}
        if code in retried or code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return ProviderUnavailableError
        return ProviderRefusedError


def _code(status: int, answer: object) -> int:
    """Return the status of a response; an error in the envelope of a 200 has its `code`, 500 without one."""
    if status >= HTTPStatus.MULTIPLE_CHOICES or not isinstance(answer, dict):
        return status
    if not answer.get("error") or answer.get("error") == "false":
        return status
    try:
        code = int(answer.get("code") or 0)
    except (TypeError, ValueError):
        code = 0
    return code if code >= HTTPStatus.MULTIPLE_CHOICES else HTTPStatus.INTERNAL_SERVER_ERROR


def _message(answer: object) -> str:
    if not isinstance(answer, dict):
        return ""
    error = answer.get("error")
    text = answer.get("message") or (error if isinstance(error, str) else "")
    return str(text)[:_MOST_SHOWN]


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of `Retry-After`; None without one, or if it is a date."""
    text = headers.get("Retry-After", "")
    return float(text) if text.isascii() and text.isdigit() else None
