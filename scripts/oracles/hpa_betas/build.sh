#!/bin/sh
# Build the program that converts HPAs as the last release does that served autoscaling/v2beta1 and v2beta2:
# oracles/hpa_betas/build.sh OUTPUT. The source comes through the Go module proxy.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
version=1.24.17
output=$(realpath -m "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cp "$here/main.go" .
printf 'module oracle\ngo 1.26.0\nrequire k8s.io/kubernetes v%s\n' "$version" > go.mod
source=$(go mod download -json "k8s.io/kubernetes@v$version" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
grep -oE '^\s+k8s.io/[a-z0-9-]+ => ./staging' "$source/go.mod" | awk '{print $1}' | while read -r module; do
  go mod edit -replace "$module=$module@v0.${version#1.}"
done
go mod tidy -e > /dev/null 2>&1 || true
GOFLAGS=-mod=mod go build -o "$output" .
