"""An operator for Memcached: a cache with its autoscaler, its service and everything around them."""
