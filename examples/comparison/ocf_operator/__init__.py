"""The operator of sites, with ocf."""
