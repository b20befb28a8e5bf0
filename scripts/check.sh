#!/usr/bin/env bash
# Format, lints, tests, documentation: what a change must pass. Arguments go to the test runner.
#
# Everything is built once, with crash points compiled in (feature `failpoints` of the test crate), into one target folder.
# With `CHECK_ONLY=fmt,clippy,doc,test` only the parts named run.
set -euo pipefail
cd "$(dirname "$0")/.."

parts=${CHECK_ONLY:-fmt,clippy,doc,test}
features=(--workspace --features harness-tests/failpoints)
skipped=()

wants() { case ",$parts," in *",$1,"*) return 0 ;; *) return 1 ;; esac; }
step() { printf '\n== %s\n' "$1"; }
skip() { skipped+=("$1"); }

# Tools that only some tests need: what is absent is skipped, and told at the end.
command -v strace >/dev/null || skip "strace is not installed: nothing kills at system calls"
if ! unshare --user --map-root-user --mount true 2>/dev/null && ! unshare --mount true 2>/dev/null; then
    skip "no namespace can be made here: tests on a full disk say so and end"
fi

if wants fmt; then
    step "format"
    if cargo fmt --version >/dev/null 2>&1; then
        cargo fmt --all --check
    else
        skip "rustfmt is not installed: the format was not checked"
    fi
fi

if wants clippy; then
    step "lints"
    if cargo clippy --version >/dev/null 2>&1; then
        cargo clippy --locked "${features[@]}" --all-targets -- -D warnings
    else
        skip "clippy is not installed: lints were not checked"
    fi
fi

if wants doc; then
    step "documentation"
    RUSTDOCFLAGS="-D warnings" cargo doc --locked "${features[@]}" --no-deps --quiet
fi

if wants test; then
    step "tests"
    log=$(mktemp)
    trap 'rm -f "$log"' EXIT
    status=0
    # Two crash tests take many minutes each: a daemon life for each crash point, and a hundred random kills.
    long=(-E 'not (package(harness-tests) and (test(/^points::/) or test(/^storm::/)))')
    without=(--skip points:: --skip storm::)
    if [ -n "${HARNESS_LONG:-}" ]; then
        long=() without=()
    else
        skip "the long crash tests (points, storm) did not run: HARNESS_LONG=1 scripts/test runs them too"
    fi
    if cargo nextest --version >/dev/null 2>&1; then
        cargo nextest run --locked "${features[@]}" "${long[@]}" "$@" 2>&1 | tee "$log" || status=$?
        summary=$(grep -E '^ *Summary' "$log" | tail -n 1 || true)
    else
        skip "cargo-nextest is not installed: cargo test ran instead, without a limit for a single test"
        cargo test --locked "${features[@]}" --no-fail-fast "$@" -- "${without[@]}" 2>&1 | tee "$log" || status=$?
        # `cargo test` sums up each binary; the last line sums these up in the words of nextest.
        summary=$(awk -v took="$SECONDS" '
            /^test result:/ { p += $4; f += $6; i += $8 }
            END { printf "Summary [%ds] %d tests run: %d passed, %d failed, %d skipped", took, p + f, p, f, i }
        ' "$log")
    fi
fi

printf '\n'
for reason in "${skipped[@]+"${skipped[@]}"}"; do printf 'skipped: %s\n' "$reason"; done
if wants test; then
    printf '%s\n' "${summary:-no test ran}"
    exit "$status"
fi
