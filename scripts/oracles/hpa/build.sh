#!/bin/sh
# Build the program that decides as the controller of a Kubernetes release does, from its own source:
# oracles/hpa/build.sh [OUTPUT [VERSION]]. The source comes through the Go module proxy; without OUTPUT, the program goes
# where the benchmarks find it.
set -eu
. "$(dirname "$0")/module.sh"
output=$(realpath -m "${1:-${XDG_CACHE_HOME:-$HOME/.cache}/ocf/hpa-oracle-$default_version}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
prepare_module "${2:-$default_version}"
cp "$here/main.go" .
go mod tidy -e > /dev/null 2>&1 || true
GOFLAGS=-mod=mod go build -o "$output" .
