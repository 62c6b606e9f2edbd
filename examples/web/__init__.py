"""An operator for a web shop: a database, an application that waits for it, an optional exporter, an autoscaler."""
