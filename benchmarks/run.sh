#!/usr/bin/env bash
# Prints the benchmarks' tables: time of a training step against its GEMMs alone, and compile times.
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/lib.sh"

bootstrap
configure -DSHOAL_SANITIZE=OFF
build shoalc shoal-run shoal-rt-main gemms-of-a-step

PATH=$BUILD_DIR/bin:$PATH
say "benchmarks"
exec python3 "$SHOAL_ROOT/benchmarks/measure.py" "$@" --work "$BUILD_DIR/benchmarks"
