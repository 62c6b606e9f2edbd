"""Asking admission webhooks over HTTPS, as a real API server does."""

import asyncio
import base64
import binascii
import json
import ssl
from collections.abc import Mapping
from typing import Any, Final

from ocf.embedded.admission.errors import UnansweredError
from ocf.objects import Manifest

__all__ = ["HttpAdmissionClient"]

_OK: Final = 200
_MOST_SHOWN: Final = 200


class _UnknownServiceError(ValueError):
    """A service that nobody told us the address of."""

    def __init__(self, place: tuple[str, str], service: Mapping[str, Any]) -> None:
        namespace, name = place
        super().__init__(f'service "{name}" not found')
        self.url = f"https://{name}.{namespace}.svc:{service.get('port', 443)}{service.get('path') or ''}"


class HttpAdmissionClient:
    """Asks webhooks over HTTPS; their certificates are checked against the `caBundle` of their configuration.

    Each question has a connection of its own, so nothing is left open that somebody would have to close.

    Args:
        services: Where the services are that configurations name, by namespace and name: `https://127.0.0.1:8443`.
            An embedded cluster has no network that would know.

    Example:
        >>> admission = HttpAdmissionClient(services={("shop", "webhook"): "https://127.0.0.1:8443"})
        >>> admission.address({"service": {"namespace": "shop", "name": "webhook", "path": "/check"}})
        'https://127.0.0.1:8443/check'
    """

    def __init__(self, services: Mapping[tuple[str, str], str] | None = None) -> None:
        self._services = dict(services or {})

    def address(self, config: Mapping[str, Any]) -> str:
        """Return where a webhook is.

        Args:
            config: Its `clientConfig`.

        Returns:
            The URL.

        Raises:
            ValueError: If it is behind a service that nobody told us the address of.
        """
        if config.get("url"):
            return str(config["url"])
        service = config.get("service") or {}
        place = (str(service.get("namespace")), str(service.get("name")))
        if place not in self._services:
            raise _UnknownServiceError(place, service)
        return self._services[place].rstrip("/") + (service.get("path") or "")

    async def ask(self, webhook: Mapping[str, Any], question: Manifest, *, seconds: float) -> Any:
        """Send an AdmissionReview to a webhook and return its answer.

        Args:
            webhook: The webhook's entry in its configuration.
            question: The AdmissionReview with the request.
            seconds: How long it may take.

        Returns:
            The answer as JSON.

        Raises:
            UnansweredError: If there is no answer, or none that is JSON.
        """
        config = webhook.get("clientConfig") or {}
        try:
            url = _timed(self.address(config), seconds)
        except _UnknownServiceError as error:
            post = f'Post "{_timed(error.url, seconds)}"'
            raise UnansweredError(f"failed to call webhook: {post}: {error}") from error
        # The library is only loaded when there is a webhook to ask.
        import aiohttp

        try:
            return await self._post(url, question, _verification(config), seconds)
        except (TimeoutError, aiohttp.ClientError, OSError, ValueError) as error:
            text = "context deadline exceeded" if isinstance(error, asyncio.TimeoutError) else str(error)
            raise UnansweredError(f'failed to call webhook: Post "{url}": {text}') from error

    @staticmethod
    async def _post(url: str, question: Manifest, context: ssl.SSLContext, seconds: float) -> Any:
        import aiohttp

        timeout = aiohttp.ClientTimeout(total=seconds)
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.post(url, json=question, ssl=context, allow_redirects=False) as answer,
        ):
            body = await answer.read()
            if answer.status != _OK:
                shown = body[:_MOST_SHOWN].decode(errors="replace")
                problem = f'an error on the server ("{shown}") has prevented the request from succeeding'
                raise UnansweredError(f"failed to call webhook: {problem}")
            return json.loads(body)


def _timed(url: str, seconds: float) -> str:
    """Tell the webhook how long it may take, as a real server does."""
    return f"{url}{'&' if '?' in url else '?'}timeout={seconds:g}s"


def _verification(config: Mapping[str, Any]) -> ssl.SSLContext:
    """Trust the bundle of the configuration, and what the system trusts only where there is none."""
    bundle = config.get("caBundle")
    if not bundle:
        return ssl.create_default_context()
    try:
        text = base64.b64decode(bundle).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ValueError(f"the caBundle cannot be read: {error}") from error
    return ssl.create_default_context(cadata=text)
