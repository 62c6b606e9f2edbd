"""An operator for Memcached: a Deployment with its autoscaler, Service and related objects for each cache."""

# Before `kubernetes`: of the client, only the models are loaded then, in half of the time.
import ocf as ocf
