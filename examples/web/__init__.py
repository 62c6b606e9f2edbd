"""An operator for a web shop: a database, an application that depends on it, an optional exporter, an autoscaler."""
