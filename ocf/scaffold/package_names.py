"""Names of the top-level packages of a project."""

import keyword
import sys
from collections.abc import Collection

__all__ = ["package_problem"]


def package_problem(package: str, taken: Collection[str]) -> str:
    """Return why a package cannot be imported under a name; empty if it can.

    Args:
        package: The name, without a point.
        taken: Names that other packages and folders have.

    Example:
        >>> package_problem("json", ())
        "hides a module of Python's standard library; use another name"
    """
    if not package.isidentifier():
        return "is not an identifier of Python: begin with a letter"
    if keyword.iskeyword(package) or keyword.issoftkeyword(package):
        return "is a keyword of Python; use another name"
    if package in sys.stdlib_module_names:
        return "hides a module of Python's standard library; use another name"
    if package in taken or package == "ocf":
        return "hides another package or a folder of the project; use another name"
    return ""
