# Sourced by build.sh and cases.sh: prepare_module VERSION makes a Go module `oracle` in the current folder, with the
# package of the HPA controller of that release as `podautoscaler`. In the copy, the clock is replaced, and nothing else.
here=$(cd "$(dirname "$0")" && pwd)
default_version=$(sed -n 's/^KUBERNETES_VERSION: Final = "\(.*\)"$/\1/p' "$here/../../../ocf/schema/kubernetes.py")

prepare_module() {
  version=$1
  minor=$(echo "$version" | cut -d. -f2)
  cat > go.mod <<M
module oracle
go 1.26.0
require k8s.io/kubernetes v$version
M
  source=$(go mod download -json "k8s.io/kubernetes@v$version" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
  grep -oE '^\s+k8s.io/[a-z0-9-]+ => ./staging' "$source/go.mod" | awk '{print $1}' | while read -r module; do
    go mod edit -replace "$module=$module@v0.${version#1.}"
  done
  package="$source/pkg/controller/podautoscaler"
  mkdir podautoscaler
  for file in "$package"/*.go; do
    case $file in *_test.go) continue ;; esac
    sed 's/time\.Now()/clockNow()/g; s/metav1\.Now()/metav1.NewTime(clockNow())/g' "$file" \
      > "podautoscaler/$(basename "$file")"
  done
  cp "$here/oracle.go" "$here/benchmark.go" podautoscaler/
  # The constructors changed twice; the file of the latest change that this release has is the one.
  for first in 30 33 37; do
    if [ "$minor" -ge "$first" ]; then cp "$here/release_1_$first.go.txt" podautoscaler/release.go; fi
  done
}
