// On one device there is nobody to talk to: collectives are refused, a reshard changes nothing.
// RUN: shoal-opt %s -split-input-file -verify-diagnostics --interpret -o /dev/null | FileCheck %s
// RUN: not shoal-opt %s -split-input-file --interpret="precision=half" -o /dev/null 2>&1 | FileCheck %s --check-prefix=PRECISION
// RUN: not shoal-opt %s -split-input-file --interpret="function=nowhere" -o /dev/null 2>&1 | FileCheck %s --check-prefix=FUNCTION

// PRECISION: error: precision is f64 or program, got: half
// FUNCTION: error: the module has no function of that name: nowhere

dist.mesh @mesh <["x"=2]>
func.func @reshard(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = nn.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %1 = dist.reshard %0 <@mesh, [{"x"}]> : tensor<2xf32>
  return %1 : tensor<2xf32>
}
// CHECK: result 0: {{.*}} [1, 2]

// -----

dist.mesh @mesh <["x"=2]>
func.func @collective(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @below {{'dist.all_reduce' needs a mesh: the program runs on one device here}}
  %0 = dist.all_reduce {"x"} sum %x : tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// Of two functions neither is a model: the option says which one is meant.
// expected-error @below {{cannot tell which function is meant (option function): the module has 2, of which models: 0}}
module {
  func.func @a() {
    return
  }
  func.func @b() {
    return
  }
}
