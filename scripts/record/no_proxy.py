"""Record which addresses Go's `httpproxy` package excludes from a proxy, into the table that the tests compare with.

The package comes through the Go module proxy; `go` must be on the path.

    python scripts/record/no_proxy.py
"""

import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

PROGRAM: Final = Path(__file__).parents[1] / "oracles" / "no_proxy" / "main.go"
TABLE: Final = Path(__file__).parents[2] / "tests" / "cluster" / "client" / "data" / "no_proxy.json"
MODULE: Final = "golang.org/x/net@v0.49.0"

URLS: Final = (
    *("https://localhost:6443", "http://localhost", "https://LOCALHOST", "https://localhost.example.com"),
    *("https://127.0.0.1:6443", "https://127.9.9.9", "https://[::1]:6443", "https://[::ffff:127.0.0.1]"),
    *("https://10.1.2.3:6443", "https://10.1.2.3", "http://10.1.2.3", "https://11.1.2.3", "https://192.168.0.1"),
    *("https://[2001:db8::1]:6443", "https://[2001:db8::1]", "https://[2001:db9::1]", "https://[::ffff:10.1.2.3]"),
    *("https://[fe80::1%25eth0]:6443", "https://010.1.2.3", "https://10.1.2", "https://user:word@10.1.2.3:6443"),
    *("https://example.com", "https://example.com:6443", "http://example.com", "https://EXAMPLE.com"),
    *("https://api.example.com", "https://a.api.example.com:6443", "https://notexample.com", "https://example.org"),
    *("https://example.com.", "https://com", "https://kubernetes.default.svc", "https://bücher.example.com"),
    *("https://xn--bcher-kva.example.com", "https://10.1.2.3.example.com", "https://api.example.com:443/k8s"),
)
ENTRIES: Final = (
    *("", " ", ",", "*", " * ", "*,example.com", "example.com,*", "**", "*.", ".", "*example.com"),
    *("example.com", "EXAMPLE.COM", " example.com ", ".example.com", "*.example.com", "*.com", ".com", "com"),
    *("example.com.", "api.example.com", ".api.example.com", "a.example.com,example.org", "ample.com"),
    *("example.com:6443", "example.com:443", "example.com:80", ".example.com:6443", "*.example.com:6443"),
    *("example.com:", ":6443", "example.com:https", "https://example.com", "example.com/24", "example.com:1:2"),
    *("localhost", "127.0.0.1", "::1", "10.1.2.3", "10.1.2.3:6443", "10.1.2.3:443", "10.1.2.3:80", "010.1.2.3"),
    *("10.0.0.0/8", "10.1.2.3/32", "10.1.2.0/24,2001:db8::/32", "0.0.0.0/0", "::/0", "10.0.0.0/33", "10.0.0.0/08"),
    *("10.0.0.0/255.0.0.0", "10.0.0.0/-8", "10.0.0.0/8:6443", "10.", "10.1", "10.1.2", "10.*", "10.1.2.*"),
    *("2001:db8::1", "[2001:db8::1]", "[2001:db8::1]:6443", "[2001:db8::1]:443", "2001:db8::/32", "[2001:db8::]/32"),
    *("::ffff:10.1.2.3", "::ffff:10.0.0.0/104", "::ffff:0:0/90", "[::ffff:10.1.2.3]:6443", "fe80::1", "fe80::1%eth0"),
    *("fe80::/10", "[fe80::1]:6443", ".svc", "svc", "kubernetes", "kubernetes.default.svc", ".cluster.local,.svc"),
    *("bücher.example.com", "xn--bcher-kva.example.com", ".bücher.example.com", "[example.com]", "[example.com]:6443"),
)


def go(folder: str, *command: str, text: str = "") -> bytes:
    """Run Go in a folder, and return its output."""
    done = subprocess.run(["go", *command], cwd=folder, check=True, capture_output=True, input=text.encode())  # noqa: S603, S607 (Go of this machine)
    return done.stdout


def main() -> None:
    """Run the package on every pair of address and value."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(PROGRAM, folder)
        for command in (["mod", "init", "record"], ["get", MODULE], ["mod", "tidy"]):
            go(folder, *command)
        answer = go(folder, "run", ".", text=json.dumps({"noProxy": ENTRIES, "urls": URLS}))
    table = {"module": MODULE, "urls": URLS, "direct": json.loads(answer)}
    TABLE.write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
