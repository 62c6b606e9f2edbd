"""Demo of a cache and its operator, on an embedded API server over HTTP: `python -m examples.memcached.demo`.

The operator is the real one, and talks to the server as it would in a cluster, webhooks and events included; so is the
node-group controller. The modules `played` and `nodes` simulate pods, nodes and the HPA controller. An operator in
production does not need such a package.
"""
