#!/usr/bin/env bash
# Fails when a tool defines MLIR's own symbols: then a static MLIR library was linked beside libMLIR.
#   scripts/check-shared-mlir.sh BUILD/bin
set -euo pipefail
bin=${1:?usage: check-shared-mlir.sh BUILD/bin}
status=0
checked=0
for tool in "$bin"/{shoal-opt,shoalc,shoal-lsp-server}; do
  [ -x "$tool" ] || { echo "check-shared-mlir.sh: missing tool: $tool" >&2; exit 1; }
  checked=$((checked + 1))
  # mlir::MLIRContext's constructor is defined in libMLIR and nowhere else.
  if nm -C --defined-only "$tool" | grep -q 'mlir::MLIRContext::MLIRContext('; then
    echo "check-shared-mlir.sh: $tool holds a static copy of MLIR" >&2
    status=1
  fi
done
echo "checked $checked tools"
exit $status
