// RUN: shoal-opt %s -split-input-file -verify-diagnostics --dist-verify-local

// The contract of a partitioned program, followed from the tags that the partitioner writes.

dist.mesh @mesh <["x"=2, "one"=1]>

// Reduced once before the relu, through an op that is linear and one that only moves: nothing to say.
func.func @right(%a: tensor<8x2xf32> {dist.global = #dist.global<0, tensor<8x4xf32>, <@mesh, [{}, {"x"}]>>}) -> tensor<8xf32> {
  %0 = nn.reduce sum %a dims = [1] {dist.globals = [#dist.global<0, tensor<8xf32>, <@mesh, [{}], unreduced=sum{"x"}>>]} : tensor<8x2xf32> -> tensor<8xf32>
  %1 = nn.neg %0 {dist.globals = [#dist.global<1, tensor<8xf32>, <@mesh, [{}], unreduced=sum{"x"}>>]} : tensor<8xf32>
  %2 = nn.reshape %1 : tensor<8xf32> -> tensor<2x4xf32>
  %3 = dist.all_reduce {"x"} sum %2 {reason = "r"} : tensor<2x4xf32>
  %4 = nn.relu %3 {dist.globals = [#dist.global<2, tensor<2x4xf32>, <@mesh, [{}, {}]>>]} : tensor<2x4xf32>
  %5 = nn.reshape %4 : tensor<2x4xf32> -> tensor<8xf32>
  return %5 : tensor<8xf32>
}

// Partial over an axis of size 1 is whole.
func.func @size_one(%a: tensor<8x4xf32> {dist.global = #dist.global<0, tensor<8x4xf32>, <@mesh, [{}, {"one"}]>>}) -> tensor<8xf32> {
  %0 = nn.reduce sum %a dims = [1] {dist.globals = [#dist.global<0, tensor<8xf32>, <@mesh, [{}], unreduced=sum{"one"}>>]} : tensor<8x4xf32> -> tensor<8xf32>
  %1 = nn.relu %0 {dist.globals = [#dist.global<2, tensor<8xf32>, <@mesh, [{}]>>]} : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// Written by hand: no tags, no reasons.
func.func @by_hand(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = dist.all_reduce {"x"} sum %a : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

dist.mesh @mesh <["x"=2]>
func.func @nonlinear(%a: tensor<8x2xf32> {dist.global = #dist.global<0, tensor<8x4xf32>, <@mesh, [{}, {"x"}]>>}) -> tensor<8xf32> {
  // expected-note @+1 {{the partial value is made here}}
  %0 = nn.reduce sum %a dims = [1] {dist.globals = [#dist.global<0, tensor<8xf32>, <@mesh, [{}], unreduced=sum{"x"}>>]} : tensor<8x2xf32> -> tensor<8xf32>
  // expected-error @+1 {{meets a value that is partial over "x": a reduction is missing; the op is not linear in it}}
  %1 = nn.relu %0 {dist.globals = [#dist.global<1, tensor<8xf32>, <@mesh, [{}]>>]} : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

dist.mesh @mesh <["x"=2]>
func.func @bias(%a: tensor<8x2xf32> {dist.global = #dist.global<0, tensor<8x4xf32>, <@mesh, [{}, {"x"}]>>}, %b: tensor<8xf32>) -> tensor<8xf32> {
  // expected-note @+1 {{the partial value is made here}}
  %0 = nn.reduce sum %a dims = [1] {dist.globals = [#dist.global<0, tensor<8xf32>, <@mesh, [{}], unreduced=sum{"x"}>>]} : tensor<8x2xf32> -> tensor<8xf32>
  // expected-error @+1 {{meets a value that is partial over "x": a reduction is missing; the op is not linear in it}}
  %1 = nn.add %0, %b {dist.globals = [#dist.global<1, tensor<8xf32>, <@mesh, [{}]>>]} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

dist.mesh @mesh <["x"=2]>
func.func @wrong_tag(%a: tensor<8x2xf32> {dist.global = #dist.global<0, tensor<8x4xf32>, <@mesh, [{}, {"x"}]>>}) -> tensor<8xf32> {
  %0 = nn.reduce sum %a dims = [1] {dist.globals = [#dist.global<0, tensor<8xf32>, <@mesh, [{}], unreduced=sum{"x"}>>]} : tensor<8x2xf32> -> tensor<8xf32>
  // expected-error @+1 {{is tagged #dist.sharding<@mesh, [{}]>, but partial operands make its result partial over "x": a reduction is missing}}
  %1 = nn.neg %0 {dist.globals = [#dist.global<1, tensor<8xf32>, <@mesh, [{}]>>]} : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

dist.mesh @mesh <["x"=2]>
func.func @returned(%a: tensor<8x2xf32> {dist.global = #dist.global<0, tensor<8x4xf32>, <@mesh, [{}, {"x"}]>>}) -> tensor<8xf32> {
  // expected-note @+1 {{the partial value is made here}}
  %0 = nn.reduce sum %a dims = [1] {dist.globals = [#dist.global<0, tensor<8xf32>, <@mesh, [{}], unreduced=sum{"x"}>>]} : tensor<8x2xf32> -> tensor<8xf32>
  // expected-error @+1 {{meets a value that is partial over "x": a reduction is missing; function results are reduced}}
  return %0 : tensor<8xf32>
}

// -----

dist.mesh @mesh <["x"=2]>
func.func @twice(%a: tensor<8x2xf32> {dist.global = #dist.global<0, tensor<8x4xf32>, <@mesh, [{}, {"x"}]>>}) -> tensor<8xf32> {
  %0 = nn.reduce sum %a dims = [1] {dist.globals = [#dist.global<0, tensor<8xf32>, <@mesh, [{}], unreduced=sum{"x"}>>]} : tensor<8x2xf32> -> tensor<8xf32>
  %1 = dist.all_reduce {"x"} sum %0 {reason = "r"} : tensor<8xf32>
  // expected-error @+1 {{reduces over "x", over which its operand is no partial sum: it would count twice}}
  %2 = dist.all_reduce {"x"} sum %1 {reason = "r"} : tensor<8xf32>
  return %2 : tensor<8xf32>
}

// -----

dist.mesh @mesh <["x"=2]>
func.func @kind(%a: tensor<8x2xf32> {dist.global = #dist.global<0, tensor<8x4xf32>, <@mesh, [{}, {"x"}]>>}) -> tensor<8xf32> {
  %0 = nn.reduce max %a dims = [1] {dist.globals = [#dist.global<0, tensor<8xf32>, <@mesh, [{}], unreduced=max{"x"}>>]} : tensor<8x2xf32> -> tensor<8xf32>
  // expected-error @+1 {{reduces over "x", over which its operand is no partial sum: it would count twice}}
  %1 = dist.all_reduce {"x"} sum %0 {reason = "r"} : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

dist.mesh @mesh <["x"=2]>
func.func @accumulate(%a: tensor<8x2xf32> {dist.global = #dist.global<0, tensor<8x4xf32>, <@mesh, [{}, {"x"}]>>}) -> tensor<4xf32> {
  // expected-note @+1 {{the partial value is made here}}
  %0 = dist.accumulate(%a) microbatches = 2 {
  ^bb0(%m: tensor<4x2xf32>):
    %1 = nn.reduce sum %m dims = [1] {dist.globals = [#dist.global<0, tensor<4xf32>, <@mesh, [{}], unreduced=sum{"x"}>>]} : tensor<4x2xf32> -> tensor<4xf32>
    dist.yield %1 : tensor<4xf32>
  } : (tensor<8x2xf32>) -> tensor<4xf32>
  // expected-error @+1 {{meets a value that is partial over "x"}}
  return %0 : tensor<4xf32>
}

// -----

dist.mesh @mesh <["x"=2]>
func.func @reason(%a: tensor<4xf32> {dist.global = #dist.global<0, tensor<8xf32>, <@mesh, [{"x"}]>>}) -> tensor<8xf32> {
  // expected-error @+1 {{must say its reason: the op and the annotation that caused it}}
  %0 = dist.all_gather {"x"} dim = 0 %a : tensor<4xf32> -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

dist.mesh @mesh <["x"=2]>
func.func @reshard(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{belongs to a global program (L1); run dist-partition}}
  %0 = dist.reshard %a <@mesh, [{}]> : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

dist.mesh @mesh <["x"=2]>
func.func @left(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{still has a sharding over "x": #dist.sharding<@mesh, [{"x"}]>; run dist-partition over that axis}}
  %0 = nn.relu %a {dist.shardings = [#dist.sharding<@mesh, [{"x"}]>]} : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

dist.mesh @mesh <["x"=2]>
// expected-error @+1 {{still has a value partial over "x"}}
func.func @left(%a: tensor<4xf32>) -> (tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{}], unreduced=sum{"x"}>}) {
  return %a : tensor<4xf32>
}

// -----

// A sum over micro-batches of maxima over shards is no maximum.
dist.mesh @mesh <["x"=2]>
func.func @accumulated_max(%a: tensor<8x2xf32> {dist.global = #dist.global<0, tensor<8x4xf32>, <@mesh, [{}, {"x"}]>>}) -> tensor<4xf32> {
  %0 = dist.accumulate(%a) microbatches = 2 {
  ^bb0(%m: tensor<4x2xf32>):
    // expected-note @+1 {{the partial value is made here}}
    %1 = nn.reduce max %m dims = [1] {dist.globals = [#dist.global<0, tensor<4xf32>, <@mesh, [{}], unreduced=max{"x"}>>]} : tensor<4x2xf32> -> tensor<4xf32>
    // expected-error @+1 {{meets a value that is partial over "x": a reduction is missing; micro-batches are summed, which only partial sums pass}}
    dist.yield %1 : tensor<4xf32>
  } : (tensor<8x2xf32>) -> tensor<4xf32>
  %2 = dist.all_reduce {"x"} max %0 {reason = "test"} : tensor<4xf32>
  return %2 : tensor<4xf32>
}

// -----

// Control flow written by hand depends on the position and constants, and is checked for every position.
dist.mesh @mesh <["x"=2]>
// expected-error @+1 {{control flow and peers may depend only on the position and on constants, got: 'tensor<i64>'}}
func.func @data(%a: tensor<f32>, %n: tensor<i64>) -> tensor<f32> {
  %i = tensor.extract %n[] : tensor<i64>
  %zero = arith.constant 0 : i64
  %is = arith.cmpi eq, %i, %zero : i64
  %0 = scf.if %is -> tensor<f32> {
    %1 = dist.all_reduce {"x"} sum %a : tensor<f32>
    scf.yield %1 : tensor<f32>
  } else {
    scf.yield %a : tensor<f32>
  }
  return %0 : tensor<f32>
}

// -----

// Where the program says itself who runs a collective, those are whole groups, with control flow or without.
dist.mesh @mesh <["x"=2]>
func.func @part(%a: tensor<f32>) -> tensor<f32> {
  // expected-error @+1 {{'dist.all_reduce' op needs every position of its group: position 1 does not enter it, position 0 does}}
  %0 = dist.all_reduce {"x"} sum %a {dist.at = array<i64: 0>} : tensor<f32>
  return %a : tensor<f32>
}

// -----

// A reason that the compiler made names an annotation.
dist.mesh @mesh <["x"=2]>
func.func @no_cause(%a: tensor<4xf32> {dist.global = #dist.global<0, tensor<8xf32>, <@mesh, [{"x"}]>>}) -> tensor<8xf32> {
  // expected-error @+1 {{must name the annotation that caused it, got: #dist.reason<"result 0">}}
  %0 = dist.all_gather {"x"} dim = 0 %a {reason = #dist.reason<"result 0">} : tensor<4xf32> -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// Records of annotations are gone when nothing is annotated any more.
dist.mesh @mesh <["x"=2]>
func.func @record_left(%a: tensor<4xf32> {dist.global = #dist.global<0, tensor<4xf32>, <@mesh, [{}]>>}) -> tensor<4xf32> {
  // expected-error @+1 {{still records why its values are sharded, in dist.why; run dist-partition over all axes}}
  %0 = nn.relu %a {dist.why = {x = #dist.cause<"the batch of \22x\22" by "data parallelism">}} : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// What branches of a partitioned program hold is followed, too: a reduction is missing in one that runs.
dist.mesh @mesh <["x"=2]>
func.func @branch(%a: tensor<8x2xf32> {dist.global = #dist.global<0, tensor<8x4xf32>, <@mesh, [{}, {"x"}]>>}) -> tensor<8xf32> {
  // expected-note @+1 {{the partial value is made here}}
  %0 = nn.reduce sum %a dims = [1] {dist.globals = [#dist.global<0, tensor<8xf32>, <@mesh, [{}], unreduced=sum{"x"}>>]} : tensor<8x2xf32> -> tensor<8xf32>
  %yes = arith.constant true
  %1 = scf.if %yes -> tensor<8xf32> {
    // expected-error @+1 {{meets a value that is partial over "x": a reduction is missing; the op is not linear in it}}
    %2 = nn.relu %0 {dist.globals = [#dist.global<1, tensor<8xf32>, <@mesh, [{}]>>]} : tensor<8xf32>
    scf.yield %2 : tensor<8xf32>
  } else {
    %3 = dist.all_reduce {"x"} sum %0 {reason = "r"} : tensor<8xf32>
    scf.yield %3 : tensor<8xf32>
  }
  return %1 : tensor<8xf32>
}

// -----

// A rank's mean is no part of the mean.
func.func @mean(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<f32> {
  // expected-error @+1 {{'nn.mse_loss' op is a mean, and what it divides by is the count of the whole}}
  %0 = nn.mse_loss mean %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
