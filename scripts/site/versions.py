"""Versions of the site: `make site-version VERSION=0.1` commits the site to the branch gh-pages, beside earlier ones.

mike keeps a folder for each version in the branch. The newest version is `latest`, to which the root of the branch
redirects. Nothing is pushed.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from scripts.cached_environment import SITE
from scripts.site.build import ROOT, assemble_folder

__all__ = ["BRANCH", "LATEST", "deploy"]

BRANCH: Final = "gh-pages"
LATEST: Final = "latest"


def deploy(version: str, *, configuration: Path, repository: Path) -> int:
    """Build the site and commit it as the latest version.

    Args:
        version: The version, `0.1`.
        configuration: The configuration of MkDocs.
        repository: The folder of the Git repository.

    Returns:
        The exit status of mike; 0 if both commits are made.
    """
    # mike calls `mkdocs` by its name.
    programs = SITE.folder() / "bin"
    path = os.pathsep.join([str(programs), os.environ.get("PATH", "")])
    environment = {**os.environ, "PATH": path, "SITE_VERSIONS": "mike", "NO_MKDOCS_2_WARNING": "1"}
    given = ("--config-file", str(configuration), "--branch", BRANCH)
    for arguments in (("deploy", *given, "--update-aliases", version, LATEST), ("set-default", *given, LATEST)):
        command = [str(programs / "mike"), *arguments]
        done = subprocess.run(command, cwd=repository, env=environment, check=False)  # noqa: S603 (ours)
        if done.returncode:
            return done.returncode
    return 0


def main() -> int:
    """Deploy the version that the command line names."""
    if len(sys.argv) != 2 or not sys.argv[1]:  # noqa: PLR2004 (the program and the version)
        print("name the version with VERSION=0.1", file=sys.stderr)
        return 2
    done = deploy(sys.argv[1], configuration=assemble_folder(), repository=ROOT)
    if done == 0:
        print(f"The branch {BRANCH} has version {sys.argv[1]}. To publish it, run\n\n    git push origin {BRANCH}")
    return done


if __name__ == "__main__":
    sys.exit(main())
