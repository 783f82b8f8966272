// A Llama of two layers with two key/value heads for six query heads is what PyTorch computes in float64.
// RUN: %python %support/golden.py %s %S/golden/llama_gqa_adamw.json --work %t.llama_gqa_adamw \
// RUN:   --ranks 1,2,3,4 --plan "tensor=2 --tensor-parallel" --plan "tensor=3 --tensor-parallel" --plan "tensor=4 --tensor-parallel" \
// RUN:   --plan "tensor=2 --tensor-parallel --sequence-parallel" --plan "tensor=3 --tensor-parallel --sequence-parallel --keep-gathered" \
// RUN:   --plan "data=2,tensor=2 --tensor-parallel" --plan "data=2,tensor=3 --tensor-parallel --sequence-parallel" \
// RUN:   --plan "data=2 --microbatches 3" --plan "data=2,tensor=2 --tensor-parallel --microbatches 2"
// The stages of ZeRO, beside tensor parallelism and over replicas.
// RUN: %python %support/golden.py %s %S/golden/llama_gqa_adamw.json --work %t.zero \
// RUN:   --plan "data=3 --zero 1" --plan "data=2,tensor=2 --tensor-parallel --zero 2" --plan "replica=2,data=2 --zero 3 --no-overlap"

func.func @llama(
    %ids: tensor<4x16xi64> {nn.input = "ids"},
    %labels: tensor<4x16xi64> {nn.input = "labels"},
    %emb: tensor<50x48xf64> {nn.param = #nn.param<"emb", init = zeros>},
    %l0_n1: tensor<48xf64> {nn.param = #nn.param<"l0.n1", init = ones>},
    %l0_wq: tensor<48x2x3x8xf64> {nn.param = #nn.param<"l0.wq", init = zeros, file = [48, 48]>},
    %l0_wk: tensor<48x2x8xf64> {nn.param = #nn.param<"l0.wk", init = zeros, file = [48, 16]>},
    %l0_wv: tensor<48x2x8xf64> {nn.param = #nn.param<"l0.wv", init = zeros, file = [48, 16]>},
    %l0_wo: tensor<2x3x8x48xf64> {nn.param = #nn.param<"l0.wo", init = zeros, file = [48, 48]>},
    %l0_n2: tensor<48xf64> {nn.param = #nn.param<"l0.n2", init = ones>},
    %l0_wg: tensor<48x80xf64> {nn.param = #nn.param<"l0.wg", init = zeros>},
    %l0_wu: tensor<48x80xf64> {nn.param = #nn.param<"l0.wu", init = zeros>},
    %l0_wd: tensor<80x48xf64> {nn.param = #nn.param<"l0.wd", init = zeros>},
    %l1_n1: tensor<48xf64> {nn.param = #nn.param<"l1.n1", init = ones>},
    %l1_wq: tensor<48x2x3x8xf64> {nn.param = #nn.param<"l1.wq", init = zeros, file = [48, 48]>},
    %l1_wk: tensor<48x2x8xf64> {nn.param = #nn.param<"l1.wk", init = zeros, file = [48, 16]>},
    %l1_wv: tensor<48x2x8xf64> {nn.param = #nn.param<"l1.wv", init = zeros, file = [48, 16]>},
    %l1_wo: tensor<2x3x8x48xf64> {nn.param = #nn.param<"l1.wo", init = zeros, file = [48, 48]>},
    %l1_n2: tensor<48xf64> {nn.param = #nn.param<"l1.n2", init = ones>},
    %l1_wg: tensor<48x80xf64> {nn.param = #nn.param<"l1.wg", init = zeros>},
    %l1_wu: tensor<48x80xf64> {nn.param = #nn.param<"l1.wu", init = zeros>},
    %l1_wd: tensor<80x48xf64> {nn.param = #nn.param<"l1.wd", init = zeros>},
    %nf: tensor<48xf64> {nn.param = #nn.param<"nf", init = ones>},
    %head: tensor<48x50xf64> {nn.param = #nn.param<"head", init = zeros>})
    -> (tensor<f64> {nn.loss}, tensor<4x16x50xf64> {nn.output = "logits"}) {
  %positions = nn.iota dim = 0 : tensor<16xi64>
  %x0 = nn.embedding %emb, %ids : (tensor<50x48xf64>, tensor<4x16xi64>) -> tensor<4x16x48xf64>

  %l0_y1, %l0_r1 = nn.rms_norm %x0, %l0_n1 eps = 1.0e-6 {nn.layer = "l.0"} : tensor<4x16x48xf64>, tensor<48xf64>
  %l0_qp = nn.tensordot %l0_y1, %l0_wq axes = 1 {nn.layer = "l.0"} : (tensor<4x16x48xf64>, tensor<48x2x3x8xf64>) -> tensor<4x16x2x3x8xf64>
  %l0_kp = nn.tensordot %l0_y1, %l0_wk axes = 1 {nn.layer = "l.0"} : (tensor<4x16x48xf64>, tensor<48x2x8xf64>) -> tensor<4x16x2x8xf64>
  %l0_v = nn.tensordot %l0_y1, %l0_wv axes = 1 {nn.layer = "l.0"} : (tensor<4x16x48xf64>, tensor<48x2x8xf64>) -> tensor<4x16x2x8xf64>
  %l0_q = nn.rope %l0_qp, %positions base = 10000.0 {nn.layer = "l.0"} : tensor<4x16x2x3x8xf64>, tensor<16xi64>
  %l0_k = nn.rope %l0_kp, %positions base = 10000.0 {nn.layer = "l.0"} : tensor<4x16x2x8xf64>, tensor<16xi64>
  %l0_a, %l0_lse = nn.attention %l0_q, %l0_k, %l0_v causal scale = 0.35355339059327373 {nn.layer = "l.0"} : (tensor<4x16x2x3x8xf64>, tensor<4x16x2x8xf64>, tensor<4x16x2x8xf64>) -> tensor<4x16x2x3x8xf64>
  %l0_o = nn.tensordot %l0_a, %l0_wo axes = 3 {nn.layer = "l.0"} : (tensor<4x16x2x3x8xf64>, tensor<2x3x8x48xf64>) -> tensor<4x16x48xf64>
  %l0_x = nn.add %x0, %l0_o {nn.layer = "l.0"} : (tensor<4x16x48xf64>, tensor<4x16x48xf64>) -> tensor<4x16x48xf64>
  %l0_y2, %l0_r2 = nn.rms_norm %l0_x, %l0_n2 eps = 1.0e-6 {nn.layer = "l.0"} : tensor<4x16x48xf64>, tensor<48xf64>
  %l0_g = nn.matmul %l0_y2, %l0_wg {nn.layer = "l.0"} : (tensor<4x16x48xf64>, tensor<48x80xf64>) -> tensor<4x16x80xf64>
  %l0_u = nn.matmul %l0_y2, %l0_wu {nn.layer = "l.0"} : (tensor<4x16x48xf64>, tensor<48x80xf64>) -> tensor<4x16x80xf64>
  %l0_s = nn.silu %l0_g {nn.layer = "l.0"} : tensor<4x16x80xf64>
  %l0_h = nn.mul %l0_s, %l0_u {nn.layer = "l.0"} : (tensor<4x16x80xf64>, tensor<4x16x80xf64>) -> tensor<4x16x80xf64>
  %l0_d = nn.matmul %l0_h, %l0_wd {nn.layer = "l.0"} : (tensor<4x16x80xf64>, tensor<80x48xf64>) -> tensor<4x16x48xf64>
  %x1 = nn.add %l0_x, %l0_d {nn.layer = "l.0"} : (tensor<4x16x48xf64>, tensor<4x16x48xf64>) -> tensor<4x16x48xf64>

  %l1_y1, %l1_r1 = nn.rms_norm %x1, %l1_n1 eps = 1.0e-6 {nn.layer = "l.1"} : tensor<4x16x48xf64>, tensor<48xf64>
  %l1_qp = nn.tensordot %l1_y1, %l1_wq axes = 1 {nn.layer = "l.1"} : (tensor<4x16x48xf64>, tensor<48x2x3x8xf64>) -> tensor<4x16x2x3x8xf64>
  %l1_kp = nn.tensordot %l1_y1, %l1_wk axes = 1 {nn.layer = "l.1"} : (tensor<4x16x48xf64>, tensor<48x2x8xf64>) -> tensor<4x16x2x8xf64>
  %l1_v = nn.tensordot %l1_y1, %l1_wv axes = 1 {nn.layer = "l.1"} : (tensor<4x16x48xf64>, tensor<48x2x8xf64>) -> tensor<4x16x2x8xf64>
  %l1_q = nn.rope %l1_qp, %positions base = 10000.0 {nn.layer = "l.1"} : tensor<4x16x2x3x8xf64>, tensor<16xi64>
  %l1_k = nn.rope %l1_kp, %positions base = 10000.0 {nn.layer = "l.1"} : tensor<4x16x2x8xf64>, tensor<16xi64>
  %l1_a, %l1_lse = nn.attention %l1_q, %l1_k, %l1_v causal scale = 0.35355339059327373 {nn.layer = "l.1"} : (tensor<4x16x2x3x8xf64>, tensor<4x16x2x8xf64>, tensor<4x16x2x8xf64>) -> tensor<4x16x2x3x8xf64>
  %l1_o = nn.tensordot %l1_a, %l1_wo axes = 3 {nn.layer = "l.1"} : (tensor<4x16x2x3x8xf64>, tensor<2x3x8x48xf64>) -> tensor<4x16x48xf64>
  %l1_x = nn.add %x1, %l1_o {nn.layer = "l.1"} : (tensor<4x16x48xf64>, tensor<4x16x48xf64>) -> tensor<4x16x48xf64>
  %l1_y2, %l1_r2 = nn.rms_norm %l1_x, %l1_n2 eps = 1.0e-6 {nn.layer = "l.1"} : tensor<4x16x48xf64>, tensor<48xf64>
  %l1_g = nn.matmul %l1_y2, %l1_wg {nn.layer = "l.1"} : (tensor<4x16x48xf64>, tensor<48x80xf64>) -> tensor<4x16x80xf64>
  %l1_u = nn.matmul %l1_y2, %l1_wu {nn.layer = "l.1"} : (tensor<4x16x48xf64>, tensor<48x80xf64>) -> tensor<4x16x80xf64>
  %l1_s = nn.silu %l1_g {nn.layer = "l.1"} : tensor<4x16x80xf64>
  %l1_h = nn.mul %l1_s, %l1_u {nn.layer = "l.1"} : (tensor<4x16x80xf64>, tensor<4x16x80xf64>) -> tensor<4x16x80xf64>
  %l1_d = nn.matmul %l1_h, %l1_wd {nn.layer = "l.1"} : (tensor<4x16x80xf64>, tensor<80x48xf64>) -> tensor<4x16x48xf64>
  %x2 = nn.add %l1_x, %l1_d {nn.layer = "l.1"} : (tensor<4x16x48xf64>, tensor<4x16x48xf64>) -> tensor<4x16x48xf64>

  %y, %r = nn.rms_norm %x2, %nf eps = 1.0e-6 : tensor<4x16x48xf64>, tensor<48xf64>
  %logits = nn.matmul %y, %head : (tensor<4x16x48xf64>, tensor<48x50xf64>) -> tensor<4x16x50xf64>
  %loss, %lse = nn.cross_entropy mean %logits, %labels : (tensor<4x16x50xf64>, tensor<4x16xi64>) -> tensor<f64>
  return %loss, %logits : tensor<f64>, tensor<4x16x50xf64>
}
