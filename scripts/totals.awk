# Sums up CTest's LastTest.log: lit counts its own tests and GoogleTest its cases; any other CTest test is one.
/^[0-9]+\/[0-9]+ Testing: / { name = $3; inner = 0 }
/^ +(Passed|Expectedly Failed) *: +[0-9]+/ { n = number($0); passed += n; inner += n; lit += n }
/^ +(Failed|Unresolved|Timed Out|Unexpectedly Passed) *: +[0-9]+/ { n = number($0); failed += n; inner += n; lit += n }
/^ +(Unsupported|Skipped) *: +[0-9]+/ { skipped += number($0) }
/^\[ +OK +\] .*\([0-9]+ ms\)$/ { passed++; inner++; cases++ }
/^\[ +FAILED +\] .*\([0-9]+ ms\)$/ { failed++; inner++; cases++ }
/^Test Passed\.$/ { if (!inner) { passed++; others++ } }
/^Test Failed\.$/ { if (!inner) { failed++; others++ } }
/^\*\*\*/ && /Timeout|Exception/ { failed++ }
function number(line) { sub(/^[^:]*: +/, "", line); return line + 0 }
END {
  printf "lit %d, GoogleTest %d, others %d\n", lit, cases, others
  printf "tests: %d passed, %d failed, %d skipped\n", passed, failed, skipped
}
