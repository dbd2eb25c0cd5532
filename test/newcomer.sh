#!/usr/bin/env bash
# Does what a newcomer does: clones the repository, and runs the commands of the README and of docs/quickstart.md as they
# stand there. What is committed counts, not what is in the working tree. Needs what the README says: Go, git and make.
#
# The commands are taken from the pages, so that neither can go its own way. Only three are not run as they stand: the clone,
# which is of this repository instead of the published one; `make test`, which has its own place in CI; and a --watch, which
# would never end. The control plane is one of `make up`, whose helm and kubectl are used.
set -euo pipefail
cd "$(dirname "$0")/.."
readonly origin=$PWD
work=$(mktemp -d "${TMPDIR:-/tmp}/kick-newcomer-XXXXXX")
readonly work

finish() {
  local status=$?
  trap - EXIT
  if [ -x "$work/kick/bin/testbed" ]; then
    (cd "$work/kick" && make down) || status=1
  fi
  if [ "$status" -eq 0 ]; then
    chmod -R u+w "$work" && rm -rf "$work"
    echo "NEWCOMER SUCCEEDED"
  else
    echo "NEWCOMER FAILED; what there is, is in $work" >&2
  fi
  exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# commands prints the indented lines of a section of a page, without what a command prints.
commands() {
  awk -v section="$2" '/^## / { inside = (index($0, section) > 0) } inside && /^    [^ $]/ { sub(/^    /, ""); print }' "$1"
}

# manifests prints the blocks of YAML of a section of a page.
manifests() {
  awk -v section="$2" '/^## / { inside = (index($0, section) > 0) }
    /^```$/ { block = 0 } inside && block { print } inside && /^```yaml$/ { block = 1; print "---" }' "$1"
}

# run runs what a page says, a command a line.
run() {
  local command
  [ -n "$1" ] || { echo "there is no command in $2" >&2; exit 1; }
  while IFS= read -r command; do
    printf '\n$ %s\n' "$command"
    eval "$command" </dev/null
  done <<<"$1"
}

kubectl() { bin/testbed kubectl --dir .testbed -- "$@"; }
helm() { bin/testbed helm --dir .testbed -- "$@"; }

git clone --quiet "$origin" "$work/kick"
cd "$work/kick"
# What is built is the same for the same commit: a newcomer would wait some minutes for it.
[ ! -d "$origin/.cache" ] || cp -al "$origin/.cache" .cache

run "$(commands README.md 'Try it' | sed -e 's|^git clone [^&]*&& cd kick$|true|' -e '/^make test$/d')" "README.md, Try it"

make up KICK=0
run "$(commands docs/quickstart.md '1. Install')" "docs/quickstart.md, Install"
for section in '2. Something to restart' '3. A policy'; do
  printf '\n$ kubectl apply -f -   # docs/quickstart.md, %s\n' "$section"
  manifests docs/quickstart.md "$section" | kubectl apply -f -
done

# phase waits for a phase of the request of the quickstart.
phase() {
  local deadline=$((SECONDS + 180)) now=""
  until [ "$now" = "$1" ]; do
    [ "$SECONDS" -lt "$deadline" ] || { echo "the request is ${now:-not there}, want $1" >&2; exit 1; }
    sleep 1
    now=$(kubectl get kickrequest deployment-web -n shop -o 'jsonpath={.status.phase}' 2>/dev/null || true)
  done
}

phase NoLongerRequired
run "$(commands docs/quickstart.md '4. A change' | sed 's| --watch$||')" "docs/quickstart.md, A change"
phase Succeeded
revisions=$(kubectl get replicasets -n shop -l app=web -o name | wc -l)
[ "$revisions" -eq 2 ] || { echo "$revisions revisions of web, want 2: one restart" >&2; exit 1; }
kubectl describe deployment web -n shop | grep 'restarting because of Secret db'
