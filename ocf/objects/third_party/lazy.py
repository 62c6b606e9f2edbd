"""Models of custom resources of other projects, for annotations."""

from typing import TYPE_CHECKING

from ocf.lazy_types import lazy_types

if TYPE_CHECKING:
    from ocf.objects.third_party.cert_manager import *  # noqa: F403 (all models)
    from ocf.objects.third_party.gateway import *  # noqa: F403
    from ocf.objects.third_party.keda import *  # noqa: F403
    from ocf.objects.third_party.prometheus import *  # noqa: F403
else:
    __getattr__ = lazy_types(
        "ocf.objects.third_party.cert_manager",
        "ocf.objects.third_party.gateway",
        "ocf.objects.third_party.keda",
        "ocf.objects.third_party.prometheus",
    )
