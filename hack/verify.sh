#!/usr/bin/env bash
# Regenerates everything and shows what changed by it. Compares the tree before and after, so that
# work in progress is no fault; in a clean clone that is the same as demanding a clean tree.
set -euo pipefail
cd "$(dirname "$0")/.."

# snapshot prints the id of the whole tree as it is, with untracked files, without touching the index.
snapshot() {
  local index
  index=$(mktemp)
  cp "$(git rev-parse --git-path index)" "$index" 2>/dev/null || rm -f "$index"
  GIT_INDEX_FILE=$index git add --all
  GIT_INDEX_FILE=$index git write-tree
  rm -f "$index"
}

before=$(snapshot)
make generate chart
after=$(snapshot)

failed=0
if [ "$before" != "$after" ]; then
  git --no-pager diff --no-ext-diff "$before" "$after"
  echo "verify: generated files are out of date: run \`make generate chart\` and commit the result" >&2
  failed=1
fi

while read -r file; do
  module=$(dirname "$file")
  echo "go mod tidy -diff in $module"
  if ! (cd "$module" && go mod tidy -diff); then
    echo "verify: run \`go mod tidy\` in $module" >&2
    failed=1
  fi
done < <(git ls-files --cached --others --exclude-standard -- go.mod '*/go.mod')

exit "$failed"
