// A GPT of two layers with a tied head is what PyTorch computes in float64.
// RUN: %python %support/golden.py %s %S/golden/gpt_tied_adamw.json --work %t.gpt_tied_adamw \
// RUN:   --ranks 1,2,3,4 --plan "tensor=2 --tensor-parallel" --plan "tensor=3 --tensor-parallel" --plan "tensor=4 --tensor-parallel" \
// RUN:   --plan "tensor=2 --tensor-parallel --sequence-parallel" --plan "tensor=3 --tensor-parallel --sequence-parallel --keep-gathered" \
// RUN:   --plan "data=2,tensor=2 --tensor-parallel" --plan "data=2,tensor=3 --tensor-parallel --sequence-parallel" \
// RUN:   --plan "one --microbatches 3" --plan "data=2 --microbatches 2"
// RUN: %python %support/golden.py %s %S/golden/gpt_ignored_targets.json --work %t.gpt_ignored_targets \
// RUN:   --ranks 1,2,3,4 --plan "tensor=2 --tensor-parallel" --plan "tensor=3 --tensor-parallel" --plan "tensor=4 --tensor-parallel" \
// RUN:   --plan "tensor=2 --tensor-parallel --sequence-parallel" --plan "tensor=3 --tensor-parallel --sequence-parallel --keep-gathered" \
// RUN:   --plan "data=2,tensor=2 --tensor-parallel" --plan "data=2,tensor=3 --tensor-parallel --sequence-parallel" \
// RUN:   --plan "one --microbatches 4" --plan "data=2,tensor=2 --tensor-parallel --sequence-parallel --microbatches 2"
// The stages of ZeRO over sizes that do not divide, a tied table (gathered for both of its uses), beside other strategies.
// RUN: %python %support/golden.py %s %S/golden/gpt_tied_adamw.json --work %t.zero \
// RUN:   --plan "data=2 --zero 1 --bucket-mb 0.01" --plan "data=4 --zero 2" --plan "data=3 --zero 3" \
// RUN:   --plan "data=2,tensor=2 --tensor-parallel --sequence-parallel --zero 3"
// Stages of a pipeline: the table is in the first and the last.
// RUN: %python %support/golden.py %s %S/golden/gpt_tied_adamw.json --work %t.pipe \
// RUN:   --plan "pipe=2 --microbatches 2" --plan "pipe=4 --microbatches 4 --pipeline-schedule zb-h1" \
// RUN:   --plan "pipe=2,data=2 --zero 1 --microbatches 2 --pipeline-schedule gpipe"

func.func @gpt(
    %ids: tensor<4x12xi64> {nn.input = "ids"},
    %labels: tensor<4x12xi64> {nn.input = "labels"},
    %wte: tensor<29x24xf64> {nn.param = #nn.param<"wte", init = zeros>},
    %wpe: tensor<12x24xf64> {nn.param = #nn.param<"wpe", init = zeros>},
    %h0_ln1_g: tensor<24xf64> {nn.param = #nn.param<"h0.ln1.g", init = ones>},
    %h0_ln1_b: tensor<24xf64> {nn.param = #nn.param<"h0.ln1.b", init = zeros>},
    %h0_wqkv: tensor<24x3x4x6xf64> {nn.param = #nn.param<"h0.wqkv", init = zeros, file = [24, 72]>},
    %h0_bqkv: tensor<3x4x6xf64> {nn.param = #nn.param<"h0.bqkv", init = zeros, file = [72]>},
    %h0_wo: tensor<4x1x6x24xf64> {nn.param = #nn.param<"h0.wo", init = zeros, file = [24, 24]>},
    %h0_bo: tensor<24xf64> {nn.param = #nn.param<"h0.bo", init = zeros>},
    %h0_ln2_g: tensor<24xf64> {nn.param = #nn.param<"h0.ln2.g", init = ones>},
    %h0_ln2_b: tensor<24xf64> {nn.param = #nn.param<"h0.ln2.b", init = zeros>},
    %h0_w1: tensor<24x96xf64> {nn.param = #nn.param<"h0.w1", init = zeros>},
    %h0_b1: tensor<96xf64> {nn.param = #nn.param<"h0.b1", init = zeros>},
    %h0_w2: tensor<96x24xf64> {nn.param = #nn.param<"h0.w2", init = zeros>},
    %h0_b2: tensor<24xf64> {nn.param = #nn.param<"h0.b2", init = zeros>},
    %h1_ln1_g: tensor<24xf64> {nn.param = #nn.param<"h1.ln1.g", init = ones>},
    %h1_ln1_b: tensor<24xf64> {nn.param = #nn.param<"h1.ln1.b", init = zeros>},
    %h1_wqkv: tensor<24x3x4x6xf64> {nn.param = #nn.param<"h1.wqkv", init = zeros, file = [24, 72]>},
    %h1_bqkv: tensor<3x4x6xf64> {nn.param = #nn.param<"h1.bqkv", init = zeros, file = [72]>},
    %h1_wo: tensor<4x1x6x24xf64> {nn.param = #nn.param<"h1.wo", init = zeros, file = [24, 24]>},
    %h1_bo: tensor<24xf64> {nn.param = #nn.param<"h1.bo", init = zeros>},
    %h1_ln2_g: tensor<24xf64> {nn.param = #nn.param<"h1.ln2.g", init = ones>},
    %h1_ln2_b: tensor<24xf64> {nn.param = #nn.param<"h1.ln2.b", init = zeros>},
    %h1_w1: tensor<24x96xf64> {nn.param = #nn.param<"h1.w1", init = zeros>},
    %h1_b1: tensor<96xf64> {nn.param = #nn.param<"h1.b1", init = zeros>},
    %h1_w2: tensor<96x24xf64> {nn.param = #nn.param<"h1.w2", init = zeros>},
    %h1_b2: tensor<24xf64> {nn.param = #nn.param<"h1.b2", init = zeros>},
    %lnf_g: tensor<24xf64> {nn.param = #nn.param<"lnf.g", init = ones>},
    %lnf_b: tensor<24xf64> {nn.param = #nn.param<"lnf.b", init = zeros>})
    -> (tensor<f64> {nn.loss}, tensor<4x12x29xf64> {nn.output = "logits"}) {
  %tokens = nn.embedding %wte, %ids : (tensor<29x24xf64>, tensor<4x12xi64>) -> tensor<4x12x24xf64>
  %x0 = nn.add %tokens, %wpe : (tensor<4x12x24xf64>, tensor<12x24xf64>) -> tensor<4x12x24xf64>

  %h0_n1, %h0_m1, %h0_r1 = nn.layer_norm %x0, %h0_ln1_g, %h0_ln1_b eps = 1.0e-5 {nn.layer = "h.0"} : tensor<4x12x24xf64>, tensor<24xf64>
  %h0_p = nn.tensordot %h0_n1, %h0_wqkv axes = 1 {nn.layer = "h.0"} : (tensor<4x12x24xf64>, tensor<24x3x4x6xf64>) -> tensor<4x12x3x4x6xf64>
  %h0_qkv = nn.add %h0_p, %h0_bqkv {nn.layer = "h.0"} : (tensor<4x12x3x4x6xf64>, tensor<3x4x6xf64>) -> tensor<4x12x3x4x6xf64>
  %h0_qs = nn.slice %h0_qkv dim = 2 start = 0 {nn.layer = "h.0"} : tensor<4x12x3x4x6xf64> -> tensor<4x12x1x4x6xf64>
  %h0_q = nn.reshape %h0_qs {nn.layer = "h.0"} : tensor<4x12x1x4x6xf64> -> tensor<4x12x4x1x6xf64>
  %h0_ks = nn.slice %h0_qkv dim = 2 start = 1 {nn.layer = "h.0"} : tensor<4x12x3x4x6xf64> -> tensor<4x12x1x4x6xf64>
  %h0_k = nn.reshape %h0_ks {nn.layer = "h.0"} : tensor<4x12x1x4x6xf64> -> tensor<4x12x4x6xf64>
  %h0_vs = nn.slice %h0_qkv dim = 2 start = 2 {nn.layer = "h.0"} : tensor<4x12x3x4x6xf64> -> tensor<4x12x1x4x6xf64>
  %h0_v = nn.reshape %h0_vs {nn.layer = "h.0"} : tensor<4x12x1x4x6xf64> -> tensor<4x12x4x6xf64>
  %h0_a, %h0_lse = nn.attention %h0_q, %h0_k, %h0_v causal scale = 0.4082482904638631 {nn.layer = "h.0"} : (tensor<4x12x4x1x6xf64>, tensor<4x12x4x6xf64>, tensor<4x12x4x6xf64>) -> tensor<4x12x4x1x6xf64>
  %h0_op = nn.tensordot %h0_a, %h0_wo axes = 3 {nn.layer = "h.0"} : (tensor<4x12x4x1x6xf64>, tensor<4x1x6x24xf64>) -> tensor<4x12x24xf64>
  %h0_o = nn.add %h0_op, %h0_bo {nn.layer = "h.0"} : (tensor<4x12x24xf64>, tensor<24xf64>) -> tensor<4x12x24xf64>
  %h0_x = nn.add %x0, %h0_o {nn.layer = "h.0"} : (tensor<4x12x24xf64>, tensor<4x12x24xf64>) -> tensor<4x12x24xf64>
  %h0_n2, %h0_m2, %h0_r2 = nn.layer_norm %h0_x, %h0_ln2_g, %h0_ln2_b eps = 1.0e-5 {nn.layer = "h.0"} : tensor<4x12x24xf64>, tensor<24xf64>
  %h0_u = nn.matmul %h0_n2, %h0_w1 {nn.layer = "h.0"} : (tensor<4x12x24xf64>, tensor<24x96xf64>) -> tensor<4x12x96xf64>
  %h0_ub = nn.add %h0_u, %h0_b1 {nn.layer = "h.0"} : (tensor<4x12x96xf64>, tensor<96xf64>) -> tensor<4x12x96xf64>
  %h0_g = nn.gelu tanh %h0_ub {nn.layer = "h.0"} : tensor<4x12x96xf64>
  %h0_d = nn.matmul %h0_g, %h0_w2 {nn.layer = "h.0"} : (tensor<4x12x96xf64>, tensor<96x24xf64>) -> tensor<4x12x24xf64>
  %h0_db = nn.add %h0_d, %h0_b2 {nn.layer = "h.0"} : (tensor<4x12x24xf64>, tensor<24xf64>) -> tensor<4x12x24xf64>
  %x1 = nn.add %h0_x, %h0_db {nn.layer = "h.0"} : (tensor<4x12x24xf64>, tensor<4x12x24xf64>) -> tensor<4x12x24xf64>

  %h1_n1, %h1_m1, %h1_r1 = nn.layer_norm %x1, %h1_ln1_g, %h1_ln1_b eps = 1.0e-5 {nn.layer = "h.1"} : tensor<4x12x24xf64>, tensor<24xf64>
  %h1_p = nn.tensordot %h1_n1, %h1_wqkv axes = 1 {nn.layer = "h.1"} : (tensor<4x12x24xf64>, tensor<24x3x4x6xf64>) -> tensor<4x12x3x4x6xf64>
  %h1_qkv = nn.add %h1_p, %h1_bqkv {nn.layer = "h.1"} : (tensor<4x12x3x4x6xf64>, tensor<3x4x6xf64>) -> tensor<4x12x3x4x6xf64>
  %h1_qs = nn.slice %h1_qkv dim = 2 start = 0 {nn.layer = "h.1"} : tensor<4x12x3x4x6xf64> -> tensor<4x12x1x4x6xf64>
  %h1_q = nn.reshape %h1_qs {nn.layer = "h.1"} : tensor<4x12x1x4x6xf64> -> tensor<4x12x4x1x6xf64>
  %h1_ks = nn.slice %h1_qkv dim = 2 start = 1 {nn.layer = "h.1"} : tensor<4x12x3x4x6xf64> -> tensor<4x12x1x4x6xf64>
  %h1_k = nn.reshape %h1_ks {nn.layer = "h.1"} : tensor<4x12x1x4x6xf64> -> tensor<4x12x4x6xf64>
  %h1_vs = nn.slice %h1_qkv dim = 2 start = 2 {nn.layer = "h.1"} : tensor<4x12x3x4x6xf64> -> tensor<4x12x1x4x6xf64>
  %h1_v = nn.reshape %h1_vs {nn.layer = "h.1"} : tensor<4x12x1x4x6xf64> -> tensor<4x12x4x6xf64>
  %h1_a, %h1_lse = nn.attention %h1_q, %h1_k, %h1_v causal scale = 0.4082482904638631 {nn.layer = "h.1"} : (tensor<4x12x4x1x6xf64>, tensor<4x12x4x6xf64>, tensor<4x12x4x6xf64>) -> tensor<4x12x4x1x6xf64>
  %h1_op = nn.tensordot %h1_a, %h1_wo axes = 3 {nn.layer = "h.1"} : (tensor<4x12x4x1x6xf64>, tensor<4x1x6x24xf64>) -> tensor<4x12x24xf64>
  %h1_o = nn.add %h1_op, %h1_bo {nn.layer = "h.1"} : (tensor<4x12x24xf64>, tensor<24xf64>) -> tensor<4x12x24xf64>
  %h1_x = nn.add %x1, %h1_o {nn.layer = "h.1"} : (tensor<4x12x24xf64>, tensor<4x12x24xf64>) -> tensor<4x12x24xf64>
  %h1_n2, %h1_m2, %h1_r2 = nn.layer_norm %h1_x, %h1_ln2_g, %h1_ln2_b eps = 1.0e-5 {nn.layer = "h.1"} : tensor<4x12x24xf64>, tensor<24xf64>
  %h1_u = nn.matmul %h1_n2, %h1_w1 {nn.layer = "h.1"} : (tensor<4x12x24xf64>, tensor<24x96xf64>) -> tensor<4x12x96xf64>
  %h1_ub = nn.add %h1_u, %h1_b1 {nn.layer = "h.1"} : (tensor<4x12x96xf64>, tensor<96xf64>) -> tensor<4x12x96xf64>
  %h1_g = nn.gelu tanh %h1_ub {nn.layer = "h.1"} : tensor<4x12x96xf64>
  %h1_d = nn.matmul %h1_g, %h1_w2 {nn.layer = "h.1"} : (tensor<4x12x96xf64>, tensor<96x24xf64>) -> tensor<4x12x24xf64>
  %h1_db = nn.add %h1_d, %h1_b2 {nn.layer = "h.1"} : (tensor<4x12x24xf64>, tensor<24xf64>) -> tensor<4x12x24xf64>
  %x2 = nn.add %h1_x, %h1_db {nn.layer = "h.1"} : (tensor<4x12x24xf64>, tensor<4x12x24xf64>) -> tensor<4x12x24xf64>

  %n, %m, %r = nn.layer_norm %x2, %lnf_g, %lnf_b eps = 1.0e-5 : tensor<4x12x24xf64>, tensor<24xf64>
  %logits = nn.tensordot %n, %wte axes = 1 {transpose_b} : (tensor<4x12x24xf64>, tensor<29x24xf64>) -> tensor<4x12x29xf64>
  %loss, %lse = nn.cross_entropy mean %logits, %labels : (tensor<4x12x29xf64>, tensor<4x12xi64>) -> tensor<f64>
  return %loss, %logits : tensor<f64>, tensor<4x12x29xf64>
}
