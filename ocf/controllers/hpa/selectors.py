"""Which pods the autoscalers of a namespace last said are theirs.

Two autoscalers that select one pod would both count it, so a round asks whose selectors match its pods. With a thousand
autoscalers in a namespace, asking all of them for each pod would be most of what a round costs. So a selector is filed
under one label that it demands, and only the labels that pods have are looked up.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from ocf.objects import LabelSelector
from ocf.objects.requirements import Operator

__all__ = ["Selectors"]

_Label: TypeAlias = tuple[str, str]
_ANYTHING: Final[_Label] = ("", "")  # no label has an empty key: here are the selectors that demand no certain label
_ONE_OF: Final = (Operator.EQUALS, Operator.DOUBLE_EQUALS, Operator.IN)


class Selectors:
    """The selectors by namespace and autoscaler.

    Example:
        >>> selectors = Selectors()
        >>> selectors.put("shop", "web", LabelSelector.parse("app=web"))
        >>> selectors.put("shop", "all", LabelSelector.parse("app"))
        >>> sorted(selectors.others("shop", "mail", [{"app": "mail"}]))
        ['all']
    """

    def __init__(self) -> None:
        self._filed: dict[tuple[str, str], tuple[_Label, LabelSelector]] = {}
        self._files: defaultdict[str, defaultdict[_Label, dict[str, LabelSelector]]] = defaultdict(
            lambda: defaultdict(dict)
        )

    def __len__(self) -> int:
        return len(self._filed)

    def put(self, namespace: str, name: str, selector: LabelSelector) -> None:
        """File a selector in place of the one before.

        Args:
            namespace: Namespace of the autoscaler.
            name: Its name.
            selector: Which pods it counts.
        """
        known = self._filed.get((namespace, name))
        if known is not None and known[1] == selector:
            return
        self.drop(namespace, name)
        files = self._files[namespace]
        demanded = _demanded(selector)
        label = min(demanded, key=lambda each: len(files.get(each, ())), default=_ANYTHING)
        files[label][name] = selector
        self._filed[namespace, name] = (label, selector)

    def drop(self, namespace: str, name: str) -> None:
        """Forget the selector of an autoscaler.

        Args:
            namespace: Its namespace.
            name: Its name.
        """
        known = self._filed.pop((namespace, name), None)
        if known is None:
            return
        files, label = self._files[namespace], known[0]
        del files[label][name]
        if not files[label]:
            del files[label]
        if not files:
            del self._files[namespace]

    def others(self, namespace: str, name: str, labels: Iterable[Mapping[str, str]]) -> dict[str, LabelSelector]:
        """Return the selectors that may match a pod, and surely all that do.

        Args:
            namespace: Where the pods are.
            name: The autoscaler that asks; its own selector is left out.
            labels: The labels of the pods.
        """
        files = self._files.get(namespace)
        if files is None:
            return {}
        places = {_ANYTHING, *(item for each in labels for item in each.items())}
        found: dict[str, LabelSelector] = {}
        for place in places:
            found.update(files.get(place, ()))
        found.pop(name, None)
        return found


def _demanded(selector: LabelSelector) -> list[_Label]:
    """Return the labels without which nothing is selected."""
    return [
        (each.key, each.values[0])
        for each in selector.requirements
        if each.operator in _ONE_OF and len(each.values) == 1
    ]
