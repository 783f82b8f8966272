// RUN: shoal-opt %s -split-input-file -verify-diagnostics --dist-pack

// An axis that is not there would pack nothing, in silence.
// expected-error @+1 {{packing gradients needs mesh axis "data", the mesh is #dist.mesh<["tensor"=2]>}}
dist.mesh @mesh <["tensor"=2]>

// -----

// One device has no gradient to pack.
module {
}
