#!/bin/sh
# Write down the cases of Kubernetes' own tests of the controller, and what it answered: oracles/hpa/cases.sh OUTPUT.jsonl.gz.
# Its tests run unchanged; record.go stands between them and the code, notes what goes in and what comes out, and stops
# the clock meanwhile. One test is left out: it runs hundreds of autoscalers side by side, all of them alike.
set -eu
. "$(dirname "$0")/module.sh"
output=$(realpath -m "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
prepare_module "$default_version"
cp "$package"/*_test.go podautoscaler/
chmod u+w podautoscaler/*
cp "$here/record.go" podautoscaler/
sed 's/^var instant time.Time/var instant time.Time\nvar frozen bool/
s/^func clockNow() time.Time { return instant }/func clockNow() time.Time {\n\tif frozen {\n\t\treturn instant\n\t}\n\treturn time.Now()\n}/' \
  "$here/oracle.go" > podautoscaler/oracle.go
cd podautoscaler
sed -i 's/^func (a \*HorizontalController) reconcileAutoscaler(/func (a *HorizontalController) reconcileInner(/
s/^func convertDesiredReplicasWithRules(/func convertInner(/
s/^func (a \*HorizontalController) \(convertDesiredReplicasWithBehaviorRate\|stabilizeRecommendation\|stabilizeRecommendationWithBehaviors\|storeScaleEvent\)(/func (a *HorizontalController) \1Inner(/' horizontal.go
sed -i 's/^func (c \*ReplicaCalculator) \(Get[A-Za-z]*\)(/func (c *ReplicaCalculator) \1Inner(/' replica_calculator.go
sed -i 's/^func (tc \*testCase) setupController(.*{$/&\n\tcurrent = t.Name()/' horizontal_test.go
sed -i 's/^func (tc \*replicaCalcTestCase) runTest(.*{$/&\n\tcurrent = t.Name()/' replica_calculator_test.go
cd ..
go mod tidy -e > /dev/null 2>&1 || true
GOFLAGS=-mod=mod HPA_CASES="$work/rows.jsonl" go test -vet=off -test.skip TestMultipleHPAs ./podautoscaler > log 2>&1 || { tail log; exit 1; }
# The same round may have run several times; one of a kind is enough.
python3 - "$work/rows.jsonl" "$output" <<'P'
import gzip, json, sys
kept, seen = [], {}
for line in open(sys.argv[1]):
    row = json.loads(line)
    name = row["test"]
    if row["kind"] == "reconcile" and seen.get(name, 0) >= 3:
        continue
    seen[name] = seen.get(name, 0) + 1
    kept.append(json.dumps(row, separators=(",", ":")) + "\n")
open(sys.argv[2], "wb").write(gzip.compress("".join(kept).encode(), mtime=0))
print(len(kept), "cases")
P
