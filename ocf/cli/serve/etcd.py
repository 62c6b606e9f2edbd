"""Takes the place of etcd in envtest: it answers requests for health, since `kube_apiserver` keeps its state in memory.

It runs as a script without site packages, so that it starts within a few hundredths of a second.
"""

import signal
import socket
import sys
from urllib.parse import urlsplit

__all__ = ["client_url"]

_BODY = b'{"health":"true"}'
_ANSWER = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 17\r\nConnection: close\r\n\r\n" + _BODY
)
_DEFAULT = "http://127.0.0.1:2379"


def client_url(words: list[str]) -> str:
    """Return the URL of the flag `--listen-client-urls`, which stands in one word or in two.

    Example:
        >>> client_url(["--data-dir=/tmp/a", "--listen-client-urls", "http://0.0.0.0:1234"])
        'http://0.0.0.0:1234'
    """
    for word, following in zip(words, [*words[1:], ""], strict=True):
        name, _, value = word.partition("=")
        if name.lstrip("-") == "listen-client-urls":
            return (value or following).partition(",")[0]
    return _DEFAULT


def main(words: list[str]) -> None:
    """Serve on loopback, whatever address the URL names, until the process is ended."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with socket.create_server(("127.0.0.1", urlsplit(client_url(words)).port or 0)) as listening:
        while True:
            connection, _ = listening.accept()
            with connection:
                connection.settimeout(1)
                try:
                    connection.recv(65536)
                    connection.sendall(_ANSWER)
                except OSError:
                    continue


if __name__ == "__main__":
    main(sys.argv[1:])
