"""An operator for Memcached: a Deployment with its autoscaler, Service and related objects for each cache."""
