"""Provider for workers of clusters that VPSie manages, over its HTTP API.

It was written from the public code of the API's clients and is tested against a stub; it has not been tried on the
live service. The clients disagree on addresses, headers and names of fields, so all of these are settings.
"""

from ocf.controllers.nodegroup.providers.vpsie.connection import Credentials, VPSieConnection
from ocf.controllers.nodegroup.providers.vpsie.provider import VPSieProvider
from ocf.controllers.nodegroup.providers.vpsie.settings import VPSieSettings

__all__ = ["Credentials", "VPSieConnection", "VPSieProvider", "VPSieSettings"]
