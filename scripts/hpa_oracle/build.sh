#!/bin/sh
# Build the program that decides as the controller of Kubernetes does, from its own source: hpa_oracle/build.sh OUTPUT.
# The source comes through the Go module proxy. In the copy, the clock is replaced, and nothing else.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
version=$(sed -n 's/^KUBERNETES_VERSION: Final = "\(.*\)"$/\1/p' "$here/../../ocf/schema/kubernetes.py")
output=$(realpath -m "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat > go.mod <<M
module oracle
go 1.26.0
require k8s.io/kubernetes v$version
M
mod=$(go mod download -json "k8s.io/kubernetes@v$version")
source=$(echo "$mod" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
grep -oE '^\s+k8s.io/[a-z0-9-]+ => ./staging' "$source/go.mod" | awk '{print $1}' | while read -r module; do
  go mod edit -replace "$module=$module@v0.${version#1.}"
done
mkdir podautoscaler
for file in horizontal replica_calculator rate_limiters; do
  sed 's/time\.Now()/clockNow()/g; s/metav1\.Now()/metav1.NewTime(clockNow())/g' \
    "$source/pkg/controller/podautoscaler/$file.go" > "podautoscaler/$file.go"
done
cp "$here/oracle.go" podautoscaler/
cp "$here/main.go" .
go mod tidy -e > /dev/null 2>&1 || true
GOFLAGS=-mod=mod go build -o "$output" .
