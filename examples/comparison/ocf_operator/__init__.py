"""The operator of sites, with ocf: `ocf run examples.comparison.ocf_operator`."""
