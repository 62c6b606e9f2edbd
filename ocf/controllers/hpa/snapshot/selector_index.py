"""Index of the pod selectors of autoscalers: which other autoscalers count these pods?

The controller records the selector of an autoscaler when a reconcile gets as far as reading metrics. Until then the
selector counts as matching no pod, as in the built-in controller.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from ocf.controllers.hpa.snapshot.label_index import required_labels
from ocf.objects.selectors import LabelSelector

__all__ = ["SelectorIndex"]


class SelectorIndex:
    """The last known selector of each autoscaler.

    Example:
        >>> known = SelectorIndex()
        >>> known.put("shop", "web", LabelSelector.parse("app=web"))
        >>> known.put("shop", "all", LabelSelector.parse("app"))
        >>> list(known.others("shop", "web", [{"app": "web"}]))
        ['all']
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], LabelSelector] = {}
        self._by_label: defaultdict[tuple[str, tuple[str, str] | None], dict[str, None]] = defaultdict(dict)

    def __len__(self) -> int:
        return len(self._known)

    def put(self, namespace: str, name: str, selector: LabelSelector) -> None:
        """Record the selector of an autoscaler, in place of its former one.

        Args:
            namespace: The namespace of the autoscaler.
            selector: The selector of its pods.
        """
        if self._known.get((namespace, name)) == selector:
            return
        self.forget(namespace, name)
        self._known[namespace, name] = selector
        # Selectors that require no value cannot be found by a label, so they are candidates for every pod.
        for label in required_labels(selector) or (None,):
            self._by_label[namespace, label][name] = None

    def forget(self, namespace: str, name: str) -> None:
        """Remove a deleted autoscaler.

        Args:
            namespace: The namespace of the autoscaler.
        """
        known = self._known.pop((namespace, name), None)
        for label in () if known is None else required_labels(known) or (None,):
            names = self._by_label[namespace, label]
            names.pop(name, None)
            if not names:
                del self._by_label[namespace, label]

    def others(self, namespace: str, name: str, pods: Iterable[Mapping[str, str]]) -> dict[str, LabelSelector]:
        """Return the other autoscalers that select one of these pods.

        Args:
            namespace: The namespace of the autoscaler.
            pods: The labels of its pods.

        Returns:
            Their selectors by name, as in `Snapshot.others`; without those that select none of the pods.
        """
        found: dict[str, LabelSelector] = {}
        for labels in pods:
            for label in (None, *labels.items()):
                for other in self._by_label.get((namespace, label), ()):
                    selector = self._known[namespace, other]
                    if other != name and other not in found and selector.matches(labels):
                        found[other] = selector
        return found
