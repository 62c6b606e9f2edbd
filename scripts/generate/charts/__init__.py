"""The Helm chart and the kustomization of the controllers, generated from their code."""
