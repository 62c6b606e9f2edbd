"""Download of Mermaid, which draws the diagrams of the site: one file of the npm package, whose version is fixed here.

`npm install` would also install its sixty dependencies, which the file contains already.
"""

import base64
import hashlib
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Final

__all__ = ["FILE", "VERSION", "MermaidError", "download"]

VERSION: Final = "11.17.2"
"""The major version is that which Material for MkDocs is made for."""

_INTEGRITY: Final = "V6K3C8EBdEsPFZXSKMJe6ppQOENxuHARr9GvHX4hh47lAbhMRD9qf4oEK7LoaRQxULMa80/qt5gHO73aCleBBg=="
FILE: Final = "mermaid.min.js"


class MermaidError(Exception):
    """The package cannot be downloaded, or is another one than expected."""


def download(target: Path) -> None:
    """Write the script that draws diagrams.

    Args:
        target: The file to write.

    Raises:
        MermaidError: If npm is missing or fails, or the package has another hash.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise MermaidError("the site needs npm, to download Mermaid: install Node.js 18 or newer")
    with tempfile.TemporaryDirectory() as folder:
        command = [npm, "pack", f"mermaid@{VERSION}", "--silent", "--pack-destination", folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 (our own)
        if done.returncode:
            raise MermaidError(f"npm pack mermaid@{VERSION} failed:\n{done.stderr}")
        package = Path(folder) / f"mermaid-{VERSION}.tgz"
        found = base64.b64encode(hashlib.sha512(package.read_bytes()).digest()).decode()
        if found != _INTEGRITY:
            raise MermaidError(f"mermaid {VERSION} has the SHA-512 {found}, expected {_INTEGRITY}")
        with tarfile.open(package) as archive:
            content = archive.extractfile(f"package/dist/{FILE}")
            if content is None:
                raise MermaidError(f"mermaid {VERSION} has no dist/{FILE}")
            target.write_bytes(content.read())
