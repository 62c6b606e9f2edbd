"""Pods of autoscalers: the pods of a namespace that a selector matches, each parsed once per resource version."""

from collections import defaultdict
from typing import Final

from ocf.autoscaling.algorithm import Pod
from ocf.cluster import Cluster, ListOptions
from ocf.cluster.cache import CachedCluster
from ocf.cluster.cache.serialization import CacheEntry, unpack
from ocf.cluster.cache.subscriptions import Subscription
from ocf.controllers.hpa.snapshot.label_index import LabelIndex
from ocf.objects import Manifest
from ocf.objects.selectors import LabelSelector

__all__ = ["NamespacePods", "PodIndex", "list_pods"]

_PODS: Final = ("v1", "Pod")


class _LazyPod:
    """A pod that is parsed when an autoscaler selects it, so that other pods cost next to nothing."""

    __slots__ = ("_pod", "_source")

    def __init__(self, source: CacheEntry | Manifest) -> None:
        self._source = source
        self._pod: Pod | None = None

    def is_of(self, entry: CacheEntry) -> bool:
        return self._source is entry

    def get(self) -> Pod:
        """Return the pod; raise the same error each time if it cannot be parsed."""
        if self._pod is None:
            source = self._source
            self._pod = Pod.of(unpack(source) if isinstance(source, CacheEntry) else source)
        return self._pod


class NamespacePods:
    """The pods of one namespace."""

    __slots__ = ("index",)

    def __init__(self) -> None:
        self.index: Final[LabelIndex[str, _LazyPod]] = LabelIndex()

    def select(self, selector: LabelSelector) -> list[Pod]:
        """Return the pods that a selector matches, sorted by name."""
        return [pod.get() for pod in self.index.matching(selector)]


_NO_PODS: Final = NamespacePods()


async def list_pods(cluster: Cluster, namespace: str) -> NamespacePods:
    """Read the pods of a namespace from a cluster."""
    pods = NamespacePods()
    for pod in (await cluster.list(*_PODS, ListOptions(namespace=namespace))).items:
        metadata = pod["metadata"]
        pods.index.put(metadata["name"], metadata.get("labels") or {}, _LazyPod(pod))
    return pods


class PodIndex:
    """The pods of all namespaces, by the changes of a cache.

    It is brought up to date when it is asked, so it is never older than the cache, and takes no time of its own.

    Args:
        cluster: The cluster whose cache is followed.
    """

    def __init__(self, cluster: CachedCluster) -> None:
        self._cluster = cluster
        self._changes: Subscription | None = None
        self._namespaces: defaultdict[str, NamespacePods] = defaultdict(NamespacePods)

    def namespace(self, namespace: str) -> NamespacePods | None:
        """Return the pods of a namespace.

        Returns:
            Its pods; None while the cache does not answer reads of pods.
        """
        # An empty index before that would look like a workload without pods.
        if not any(informer.synced for informer in self._cluster.informers_of(*_PODS)):
            return None
        if self._changes is None:
            # The first take has all objects of the cache.
            self._changes = self._cluster.follow(*_PODS)
        for (home, name), entry in () if self._changes is None else self._changes.take():
            self._take(home, name, entry)
        return self._namespaces.get(namespace, _NO_PODS)

    def _take(self, home: str, name: str, entry: CacheEntry | None) -> None:
        pods = self._namespaces[home].index
        if entry is not None:
            pods.put(name, entry.labels, _LazyPod(entry))
            return
        pods.drop(name)
        if not pods:
            del self._namespaces[home]
