"""Client that calls webhooks, of admission and of conversion: the protocol, and the one over HTTPS."""

import posixpath
import ssl
from collections.abc import Mapping
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from ocf.objects import Manifest
from ocf.objects.data_validation import decode_base64
from ocf_server.api.trace_context import handed_on

__all__ = ["AdmissionClient", "HttpAdmissionClient", "UnansweredError", "tls_context"]

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


class UnansweredError(Exception):
    """A webhook could not be called, or did not respond in time.

    Args:
        problem: The problem in the words of a real API server, for example
            `failed to call webhook: Post "https://…": connection refused`.
    """

    def __init__(self, problem: str) -> None:
        super().__init__(problem)


class AdmissionClient(Protocol):
    """Client that calls admission webhooks."""

    async def ask(self, webhook: Mapping[str, Any], review: Manifest, *, seconds: float) -> Any:
        """Send an AdmissionReview to a webhook and return its response.

        Args:
            webhook: The webhook's entry in its configuration; `clientConfig` contains its address.
            review: The AdmissionReview with the request.
            seconds: Timeout of the call.

        Returns:
            The response as JSON; a correct webhook returns an AdmissionReview with a response.

        Raises:
            UnansweredError: If the webhook does not respond.
        """
        ...


class _UnknownServiceError(ValueError):
    """A service whose address is not configured."""

    def __init__(self, place: tuple[str, str], service: Mapping[str, Any]) -> None:
        namespace, name = place
        super().__init__(f'service "{name}" not found')
        self.url = _cleaned(f"https://{name}.{namespace}.svc:{service.get('port', 443)}{service.get('path') or ''}")


class HttpAdmissionClient:
    """Calls webhooks over HTTPS and verifies their certificates with the `caBundle` of their configuration.

    Each call opens its own connection, so the client does not have to be closed.

    Args:
        services: Addresses of the services that configurations refer to, by namespace and name, for example
            `https://127.0.0.1:8443`. They are needed because an embedded cluster has no service network.

    Example:
        >>> admission = HttpAdmissionClient(services={("shop", "webhook"): "https://127.0.0.1:8443"})
        >>> admission.address({"service": {"namespace": "shop", "name": "webhook", "path": "/check"}})
        'https://127.0.0.1:8443/check'
    """

    def __init__(self, services: Mapping[tuple[str, str], str] | None = None) -> None:
        self._services = dict(services or {})
        self._in_process: dict[tuple[str, str], AdmissionClient] = {}

    def connect(self, namespace: str, name: str, client: AdmissionClient) -> None:
        """Pass all later calls of a service on to a client, for webhooks of this process.

        Args:
            namespace: Namespace of the service.
            name: Its name.
            client: Answers the calls.
        """
        self._in_process[namespace, name] = client

    def address(self, config: Mapping[str, Any]) -> str:
        """Return the URL of a webhook.

        Args:
            config: Its `clientConfig`.

        Returns:
            The URL, with a cleaned path: no doubled or trailing slashes, no `.` and `..`.

        Raises:
            ValueError: If it refers to a service whose address is not configured.
        """
        if config.get("url"):
            return _cleaned(str(config["url"]))
        service = config.get("service") or {}
        place = (str(service.get("namespace")), str(service.get("name")))
        if place not in self._services:
            raise _UnknownServiceError(place, service)
        return _cleaned(f"{self._services[place]}/{service.get('path') or ''}")

    async def ask(self, webhook: Mapping[str, Any], review: Manifest, *, seconds: float) -> Any:
        """Send an AdmissionReview to a webhook and return its response.

        Args:
            webhook: The webhook's entry in its configuration.
            review: The AdmissionReview with the request.
            seconds: Timeout of the call.

        Returns:
            The response body as JSON.

        Raises:
            UnansweredError: If the webhook does not respond, or its response is not JSON.
        """
        config = webhook.get("clientConfig") or {}
        service = config.get("service") or {}
        if (local := self._in_process.get((service.get("namespace", ""), service.get("name", "")))) is not None:
            return await local.ask(webhook, review, seconds=seconds)
        try:
            url = _with_timeout(self.address(config), seconds)
        except _UnknownServiceError as error:
            post = f'Post "{_with_timeout(error.url, seconds)}"'
            raise UnansweredError(f"failed to call webhook: {post}: {error}") from error
        # Imported here, because most clusters have no webhooks and need not load the library.
        import aiohttp

        from ocf_server.api.webhook_call_errors import ResponseError, call_problem

        try:
            return await self._post(url, review, tls_context(config), seconds)
        except ResponseError as error:
            raise UnansweredError(f"failed to call webhook: {error}") from error
        except (TimeoutError, aiohttp.ClientError, OSError, ValueError) as error:
            raise UnansweredError(f'failed to call webhook: Post "{url}": {call_problem(error)}') from error

    @staticmethod
    async def _post(url: str, review: Manifest, context: ssl.SSLContext, seconds: float) -> Any:
        import aiohttp

        from ocf_server.api.webhook_call_errors import read_response

        timeout = aiohttp.ClientTimeout(total=seconds)
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.post(url, json=review, headers=handed_on(), ssl=context, allow_redirects=False) as response,
        ):
            body = await response.read()
            if response.status in _REDIRECTS:
                target = response.headers.get("Location", "")
                problem = f'redirects to "{target}" are not followed; register that URL instead'
                raise ValueError(problem)
            return read_response(response.status, response.content_type, body)


def _cleaned(url: str) -> str:
    """Clean the path of a URL as `path.Join` of Go does, with which a real API server builds it."""
    parts = urlsplit(url)
    return parts._replace(path=posixpath.normpath(f"/{parts.path.lstrip('/')}")).geturl()


def _with_timeout(url: str, seconds: float) -> str:
    """Add the timeout to the query, as a real API server does."""
    return f"{url}{'&' if '?' in url else '?'}timeout={seconds:g}s"


def tls_context(config: Mapping[str, Any]) -> ssl.SSLContext:
    """Return a TLS context that trusts the CA bundle of the configuration; the system's CAs without a bundle."""
    bundle = config.get("caBundle")
    if not bundle:
        return ssl.create_default_context()
    try:
        text = decode_base64(bundle).decode()
    except ValueError as error:
        problem = "not UTF-8" if isinstance(error, UnicodeError) else error
        raise ValueError(f"clientConfig.caBundle cannot be decoded: {problem}") from error
    context = ssl.create_default_context(cadata=text)
    # Go, in which real API servers are written, trusts any certificate of the bundle, also one that is not a CA's, and
    # does not demand the extensions of RFC 5280.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context
