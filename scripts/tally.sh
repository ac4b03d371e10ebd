# shellcheck shell=bash
# Sourced by scripts that run steps; their last line counts passed, failed and skipped steps. A step with
# status 77 could not run on this machine; its last line gives the reason.

passed=0 failed=0 skipped=0
skipped_steps=()
export PITH_SKIPPED
PITH_SKIPPED=$(mktemp)
trap 'rm -f "$PITH_SKIPPED"' EXIT

step() { # name, command...
  local name=$1 begin=$SECONDS log status; shift
  printf '\n== %s\n' "$name"
  log=$(mktemp)
  "$@" 2>&1 | tee "$log"
  status=${PIPESTATUS[0]}
  case $status in
    0) passed=$((passed + 1)) ;;
    77) skipped=$((skipped + 1)); skipped_steps+=("$name: $(tail -n 1 "$log")") ;;
    *) failed=$((failed + 1)); printf '== %s FAILED (status %s)\n' "$name" "$status" ;;
  esac
  rm -f "$log"
  printf '== %s: %s s\n' "$name" "$((SECONDS - begin))"
}

# Runs cargo test, and counts each test. Examples, which clippy checks, are not built, and there are no tests in doc comments.
tests() { # name, option of cargo test...
  local name=$1 begin=$SECONDS log rust ok bad ignored reported; shift
  printf '\n== %s\n' "$name"
  log=$(mktemp)
  : >"$PITH_SKIPPED"
  scripts/cargo test -q --locked --no-fail-fast "$@" 2>&1 | tee "$log"
  rust=${PIPESTATUS[0]}
  read -r ok bad ignored < <(awk '/^test result:/ { ok += $4; bad += $6; ignored += $8 } END { print ok + 0, bad + 0, ignored + 0 }' "$log")
  rm -f "$log"
  # A test binary that does not build has no result line.
  ((rust == 0 || bad > 0)) || bad=1
  # cargo counts tests that could not run as passed.
  reported=$(grep -vc '^a case of ' "$PITH_SKIPPED" || true)
  passed=$((passed + ok - reported)) failed=$((failed + bad)) skipped=$((skipped + reported + ignored))
  ((ignored == 0)) || skipped_steps+=("$ignored tests with #[ignore], which other tests start as subprocesses")
  while IFS= read -r line; do skipped_steps+=("$line"); done < <(sort -u "$PITH_SKIPPED")
  printf '== %s: %s s\n' "$name" "$((SECONDS - begin))"
}

tally() {
  local line
  if ((${#skipped_steps[@]})); then
    printf '\nSkipped on this machine:\n'
    for line in "${skipped_steps[@]}"; do printf '  %s\n' "$line"; done
  fi
  printf '\n%s passed, %s failed, %s skipped\n' "$passed" "$failed" "$skipped"
  ((failed == 0))
}
