#!/usr/bin/env bash
# Shows KICK at work on a real control plane of its own: installs it with Helm, changes one Secret, and
# proves that each workload that consumes it is restarted exactly once and the others not at all.
# Leaves nothing running, however it ends; after a failure the logs stay.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly began=$SECONDS
readonly namespace=shop secret=db-credentials
readonly consumers="Deployment/web StatefulSet/orders"
readonly others="DaemonSet/log-agent"
readonly patience=120 # seconds that a wait may take

mkdir -p .testbed-demo
dir=$(mktemp -d .testbed-demo/run-XXXXXX)
readonly dir

doing="starting"
step() {
  doing=$*
  printf '\n[%3ds] %s\n' $((SECONDS - began)) "$doing"
}

reason="" summary=""
fail() {
  reason=$*
  exit 1
}

kubectl() { bin/testbed kubectl --dir "$dir" -- "$@"; }
helm() { bin/testbed helm --dir "$dir" -- "$@"; }

finish() {
  local status=$?
  trap - EXIT
  trap '' INT TERM
  if [ "$status" -ne 0 ]; then
    printf '\nThe state at the end:\n' >&2
    kubectl get kickpolicies,kickrequests,pods --all-namespaces >&2 || true
  fi
  if [ -x bin/testbed ]; then
    bin/testbed down --dir "$dir" || status=1
  fi
  if [ "$status" -eq 0 ]; then
    rm -rf "$dir"
    rmdir .testbed-demo 2>/dev/null || true
    printf '\nDEMO SUCCEEDED in %ds: one change of Secret %s/%s, one restart of each workload that consumes it.\n%s' \
      $((SECONDS - began)) "$namespace" "$secret" "$summary"
  else
    printf '\nDEMO FAILED after %ds: %s\nLogs are in %s\n' \
      $((SECONDS - began)) "${reason:-exit code $status at the step \"$doing\"}" "$dir/logs" >&2
  fi
  exit "$status"
}
trap finish EXIT
trap 'reason=interrupted; exit 130' INT
trap 'reason=interrupted; exit 143' TERM

# until_true waits until a command succeeds; what it waits for is the first argument.
until_true() {
  local what=$1 deadline=$((SECONDS + patience))
  shift
  until "$@"; do
    [ "$SECONDS" -lt "$deadline" ] || fail "$what: not within ${patience}s"
    sleep 0.5
  done
}

# outcomes prints "Kind/name=phase time of completion" of every request, one a line.
outcomes() {
  kubectl get kickrequests --namespace "$namespace" --output jsonpath='{range .items[*]}'\
'{.spec.targetRef.kind}/{.spec.targetRef.name}={.status.phase} {.status.completedAt}{"\n"}{end}'
}

# value_of prints what follows "Kind/name=" in a list like that of outcomes.
value_of() { sed -n "s|^$1=||p" <<<"$2"; }

# settled tells whether no request waits or works.
settled() {
  local now
  now=$(outcomes) || return 1
  [ -z "$now" ] || ! grep -vqE '=(Succeeded|NoLongerRequired|Failed) ' <<<"$now"
}

# recorded tells whether KICK has taken note of the Secret as it is now.
recorded() {
  kubectl get kickledgers --namespace kick-system --output jsonpath='{range .items[*].records[*]}{@}{"\n"}{end}' |
    grep -qF "{\"kind\":\"Secret\",\"name\":\"$secret\","
}

shown=""
# show prints the requests when a phase or reason has changed since the last call.
show() {
  local table key
  table=$(kubectl get kickrequests --namespace "$namespace")
  key=$(awk '{ print $1, $4, $5 }' <<<"$table")
  if [ "$key" != "$shown" ]; then
    shown=$key
    printf '\n[%3ds] kubectl get kickrequests --namespace %s\n%s\n' $((SECONDS - began)) "$namespace" "$table"
  fi
}

# all_restarted tells whether every consumer's request has succeeded since the change, and shows how they
# come along.
all_restarted() {
  local workload now outcome
  now=$(outcomes)
  show
  for workload in $consumers; do
    outcome=$(value_of "$workload" "$now")
    [ "$outcome" != "$(value_of "$workload" "$earlier")" ] || return 1
    case $outcome in
      Succeeded*) ;;
      Failed*) fail "the restart of $workload failed" ;;
      *) return 1 ;;
    esac
  done
}

# revisions prints the names of a workload's ReplicaSets or ControllerRevisions.
revisions() {
  local kind=controllerrevisions name=${1#*/}
  case $1 in Deployment/*) kind=replicasets ;; esac
  kubectl get "$kind" --namespace "$namespace" --selector "app=$name" --output name
}

count() { revisions "$1" | wc -l | tr -d ' '; }

# counts prints "Kind/name=count" of every workload, one a line.
counts() {
  local workload
  for workload in $consumers $others; do
    echo "$workload=$(count "$workload")"
  done
}

rolled_out() {
  local workload
  for workload in $consumers $others; do
    kubectl rollout status "$workload" --namespace "$namespace" --timeout "${patience}s"
  done
}

step "Building KICK and the control plane (the first time takes some minutes)"
make build bin/testbed

step "Starting etcd, the Kubernetes control plane, simulated nodes and cert-manager"
bin/testbed up --dir "$dir" --cert-manager --image "ghcr.io/kick-dev/kick=$PWD/bin/manager"

step "Installing KICK: helm install kick charts/kick"
helm install kick charts/kick --namespace kick-system --create-namespace --wait --timeout 3m
kubectl get pods --namespace kick-system

step "Creating a Deployment, a StatefulSet and a DaemonSet, and a policy for them"
kubectl create namespace "$namespace"
kubectl apply --filename hack/demo/workloads.yaml --filename hack/demo/policy.yaml
rolled_out
kubectl wait kickpolicy --all --namespace "$namespace" --for condition=Ready --timeout "${patience}s"
until_true "KICK records the Secret" recorded
until_true "no request waits or works" settled
kubectl get kickpolicies --namespace "$namespace"

before=$(counts)
earlier=$(outcomes)

step "Changing the Secret $secret, which ${consumers// / and } consume"
kubectl patch secret "$secret" --namespace "$namespace" --type merge --patch '{"stringData":{"password":"after"}}'
until_true "every request succeeds" all_restarted
rolled_out

step "Counting revisions"
sleep 3 # a second restart would be on its way by now
until_true "no request waits or works" settled
for workload in $consumers $others; do
  old=$(value_of "$workload" "$before")
  after=$(count "$workload")
  new=$((after - old))
  want=0 verdict="left alone"
  case " $consumers " in *" $workload "*) want=1 verdict="restarted once" ;; esac
  [ "$new" -eq "$want" ] || fail "$workload has $new new revisions, want $want: $(revisions "$workload" | tr '\n' ' ')"
  summary+=$(printf '  %-22s revisions %d -> %d   %s' "$workload" "$old" "$after" "$verdict")$'\n'
done
