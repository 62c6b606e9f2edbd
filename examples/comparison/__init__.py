"""One operator, written three times: with ocf, with kopf and the official client, and with controller-runtime."""
