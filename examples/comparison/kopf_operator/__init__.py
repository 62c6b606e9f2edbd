"""The operator of sites, with kopf and the official client."""
