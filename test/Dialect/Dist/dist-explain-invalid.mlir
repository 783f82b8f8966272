// RUN: shoal-opt %s --dist-explain --split-input-file --verify-diagnostics -o /dev/null

// A global program has no collectives yet: that it sends nothing would be wrong.
dist.mesh @mesh <["x"=2]>
// expected-error @+1 {{still has a sharding over "x": #dist.sharding<@mesh, [{"x"}, {}]>; run dist-partition over that axis}}
func.func @annotated(%a: tensor<4x2xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>}) -> tensor<4x2xf32> {
  %0 = nn.relu %a : tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}

// -----

dist.mesh @mesh <["x"=2]>
func.func @resharded(%a: tensor<4x2xf32>) -> tensor<4x2xf32> {
  // expected-error @+1 {{belongs to a global program (L1); run dist-partition}}
  %0 = dist.reshard %a <@mesh, [{}, {}]> : tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}
