"""Lines and columns of fields in a YAML or JSON text.

The places come from the nodes of the YAML library, which has no opinion on tags and keys: positions are found in a
text that Kubernetes would reject, too. A text is parsed for this only if it has a problem.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

__all__ = ["YamlNode", "root_of", "split_path"]

_STEP: Final = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
_NULL: Final = "tag:yaml.org,2002:null"


class YamlNode(NamedTuple):
    r"""A node, where it is written, and whether it is the one that was looked for or only contains it.

    Args:
        exact: False if the field does not exist, and this is the nearest one that contains it.

    Example:
        >>> root = YamlNode.root("spec:\n  replicas: 3")
        >>> root.descend(("spec", "replicas")).line, root.descend(("spec", "paused")).line
        (2, 1)
    """

    text: str
    node: Any
    mark: Any
    exact: bool = True

    @classmethod
    def root(cls, text: str, document: int = 0) -> YamlNode | None:
        """Return the root of a document; None if the text cannot be parsed, or the document is empty or missing.

        Args:
            document: Index of the document among those that are not empty.
        """
        node = root_of(text, document)
        return None if node is None else cls(text, node, node.start_mark)

    @property
    def line(self) -> int:
        """The line in the text, from 1; only line feeds count, while YAML has more characters that end a line."""
        return self.text.count("\n", 0, self.mark.index) + 1

    @property
    def column(self) -> int:
        """The column in characters, from 1."""
        return int(self.mark.index) - self.text.rfind("\n", 0, self.mark.index)

    def descend(self, path: Sequence[str | int]) -> YamlNode:
        """Return the node at a path, or the nearest one that contains it."""
        found, rest = self, list(path)
        while rest:
            # The dots of a key, such as that of an annotation, have split it into several steps.
            keys = (".".join(map(str, rest[:count])) for count in range(2, len(rest) + 1))
            children = ((count, found.child(key)) for count, key in enumerate((rest[0], *keys), 1))
            count, child = next(((count, child) for count, child in children if child is not None), (0, None))
            if child is None:
                return found._replace(exact=False)
            found, rest = child, rest[count:]
        return found

    def child(self, step: str | int) -> YamlNode | None:
        """Return the value of a key, or the item of a list; None if there is none."""
        if isinstance(step, int):
            items = self.node.value if self.node.id == "sequence" else ()
            return YamlNode(self.text, items[step], items[step].start_mark) if step < len(items) else None
        pairs = self.node.value if self.node.id == "mapping" else []
        for key, value in reversed(pairs):  # of duplicate keys the last one counts
            if key.id == "scalar" and key.value == step:
                return YamlNode(self.text, value, key.start_mark)
        merged = (value for key, value in pairs if key.value == "<<")
        sources = (each for value in merged for each in (value.value if value.id == "sequence" else [value]))
        return next((found for each in sources if (found := YamlNode(self.text, each, None).child(step))), None)


def split_path(path: str) -> tuple[str | int, ...]:
    """Return the keys and list positions of a path.

    Args:
        path: A path as `format_path` writes it.

    Example:
        >>> split_path("spec.metrics[0].type")
        ('spec', 'metrics', 0, 'type')
    """
    return tuple(name or int(position) for name, position in _STEP.findall(path))


@lru_cache(maxsize=2)
def root_of(text: str, document: int = 0) -> Any:
    """Return the root node of a document in the YAML library; None if it cannot be parsed, is empty or missing.

    Args:
        document: Index of the document among those that are not empty.
    """
    import yaml

    try:
        nodes = yaml.compose_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        found = [node for node in nodes if node.tag != _NULL]
    except (yaml.YAMLError, RecursionError):
        return None
    return found[document] if document < len(found) else None
