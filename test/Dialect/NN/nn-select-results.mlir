// RUN: shoal-opt %s --nn-select-results=mode=train | FileCheck %s --check-prefix=TRAIN
// RUN: shoal-opt %s --nn-select-results=mode=infer | FileCheck %s --check-prefix=INFER
// RUN: shoal-opt %s --nn-select-results=mode=eval | FileCheck %s --check-prefix=EVAL
// RUN: not shoal-opt %s --nn-select-results=mode=test -o /dev/null 2>&1 | FileCheck %s --check-prefix=MODE

// MODE: error: mode must be train, eval or infer, got: test

// Training keeps loss, metric and update, and drops what only the output needs; a parameter
// stays although nothing uses it, so that its missing gradient is an error.
// TRAIN-LABEL: func.func @model
// TRAIN-SAME: (%{{[^:]*}}: tensor<8x4xf32> {nn.input = "x"}, %{{[^:]*}}: tensor<8xi64> {nn.input = "y"},
// TRAIN-SAME: nn.param = #nn.param<"w"
// TRAIN-SAME: -> (tensor<f32> {nn.loss}, tensor<f32> {nn.metric = "mean"}, tensor<4xf32> {nn.updates = "r"})
// TRAIN-NOT: nn.tanh
// TRAIN: nn.cross_entropy
// TRAIN: return %{{.*}}, %{{.*}}, %{{.*}} : tensor<f32>, tensor<f32>, tensor<4xf32>

// Evaluation keeps loss and metric, updates nothing, and says what it is.
// EVAL-LABEL: func.func @model
// EVAL-SAME: (%{{[^:]*}}: tensor<8x4xf32> {nn.input = "x"}, %{{[^:]*}}: tensor<8xi64> {nn.input = "y"})
// EVAL-SAME: -> (tensor<f32> {nn.loss}, tensor<f32> {nn.metric = "mean"}) attributes {nn.evaluation}
// EVAL-NOT: nn.tanh

// Inference keeps the output alone, and asks for no labels.
// INFER-LABEL: func.func @model
// INFER-SAME: (%[[X:[^:]*]]: tensor<8x4xf32> {nn.input = "x"}, %[[W:[^:]*]]: tensor<4xf32> {nn.param = #nn.param<"w", init = zeros>})
// INFER-SAME: -> (tensor<8x4xf32> {nn.output = "z"})
// INFER-NEXT: %[[M:.*]] = nn.mul %[[X]], %[[W]]
// INFER-NEXT: %[[T:.*]] = nn.tanh %[[M]]
// INFER-NEXT: return %[[T]] : tensor<8x4xf32>
func.func @model(%x: tensor<8x4xf32> {nn.input = "x"}, %y: tensor<8xi64> {nn.input = "y"},
    %w: tensor<4xf32> {nn.param = #nn.param<"w", init = zeros>}, %r: tensor<4xf32> {nn.state = #nn.state<"r", of = "w", init = 0.0>})
    -> (tensor<8x4xf32> {nn.output = "z"}, tensor<f32> {nn.loss}, tensor<f32> {nn.metric = "mean"}, tensor<4xf32> {nn.updates = "r"}) {
  %0 = nn.mul %x, %w : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %1 = nn.tanh %0 : tensor<8x4xf32>
  %2, %lse2 = nn.cross_entropy mean %x, %y : (tensor<8x4xf32>, tensor<8xi64>) -> tensor<f32>
  %3 = nn.reduce mean %x dims = [0, 1] : tensor<8x4xf32> -> tensor<f32>
  return %1, %2, %3, %r : tensor<8x4xf32>, tensor<f32>, tensor<f32>, tensor<4xf32>
}

// A result that is loss and output keeps the role that is asked for.
// TRAIN-LABEL: func.func @both
// TRAIN-SAME: -> (tensor<f32> {nn.loss})
// EVAL-LABEL: func.func @both
// EVAL-SAME: -> (tensor<f32> {nn.loss}) attributes {nn.evaluation}
// INFER-LABEL: func.func @both
// INFER-SAME: -> (tensor<f32> {nn.output = "loss"})
func.func @both(%x: tensor<8xf32> {nn.input = "x"}) -> (tensor<f32> {nn.loss, nn.output = "loss"}) {
  %0 = nn.reduce sum %x dims = [0] : tensor<8xf32> -> tensor<f32>
  return %0 : tensor<f32>
}

// State that is written but not read stays.
// TRAIN-LABEL: func.func @written
// TRAIN-SAME: nn.state = #nn.state<"s"
func.func @written(%x: tensor<f32> {nn.input = #nn.input<"x", unbatched>}, %s: tensor<f32> {nn.state = #nn.state<"s", of = "w", init = 0.0>})
    -> (tensor<f32> {nn.loss}, tensor<f32> {nn.updates = "s"}, tensor<f32> {nn.output = "x"}) {
  return %x, %x, %x : tensor<f32>, tensor<f32>, tensor<f32>
}

// Functions that are no models are left alone.
// TRAIN-LABEL: func.func @helper
// TRAIN: nn.neg
func.func @helper(%x: tensor<8xf32>) {
  %0 = nn.neg %x : tensor<8xf32>
  return
}

// Batch norm: training keeps the updates of buffers, inference normalises with them and writes none.
// TRAIN-LABEL: func.func @batch_norm
// TRAIN-SAME: -> (tensor<f32> {nn.loss}, tensor<4xf32> {nn.updates = "m"}, tensor<4xf32> {nn.updates = "v"})
// TRAIN: nn.batch_norm
// INFER-LABEL: func.func @batch_norm
// INFER-SAME: %[[M:[^:]*]]: tensor<4xf32> {nn.buffer = #nn.buffer<"m", init = 0.0>}, %[[V:[^:]*]]: tensor<4xf32> {nn.buffer = #nn.buffer<"v", init = 1.0>})
// INFER-SAME: -> (tensor<8x4xf32> {nn.output = "y"})
// INFER-NOT: nn.reduce
// INFER: nn.sub %{{.*}}, %[[M]]
// INFER: %[[E:.*]] = nn.add %[[V]]
// INFER: nn.rsqrt %[[E]]
// INFER: return
func.func @batch_norm(%x: tensor<8x4xf32> {nn.input = "x"}, %g: tensor<4xf32> {nn.param = #nn.param<"g", init = ones>},
    %m: tensor<4xf32> {nn.buffer = #nn.buffer<"m", init = 0.0>}, %v: tensor<4xf32> {nn.buffer = #nn.buffer<"v", init = 1.0>})
    -> (tensor<f32> {nn.loss}, tensor<8x4xf32> {nn.output = "y"}, tensor<4xf32> {nn.updates = "m"}, tensor<4xf32> {nn.updates = "v"}) {
  %0:3 = nn.batch_norm %x, %g, %g, %m, %v momentum = 0.1 eps = 1.0e-5 : tensor<8x4xf32>, tensor<4xf32>
  %1 = nn.reduce mean %0#0 dims = [0, 1] : tensor<8x4xf32> -> tensor<f32>
  return %1, %0#0, %0#1, %0#2 : tensor<f32>, tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>
}

// Dropout is the identity where nothing is trained.
// TRAIN-LABEL: func.func @dropout
// TRAIN: nn.dropout
// INFER-LABEL: func.func @dropout
// INFER-SAME: (%[[X:[^:]*]]: tensor<8x4xf32> {nn.input = "x"})
// INFER-NEXT: return %[[X]]
// EVAL-LABEL: func.func @dropout
// EVAL-NOT: nn.dropout
func.func @dropout(%x: tensor<8x4xf32> {nn.input = "x"}) -> (tensor<8x4xf32> {nn.output = "y"}, tensor<f32> {nn.loss}) {
  %0 = nn.dropout %x rate = 0.1 id = 0 : tensor<8x4xf32>
  %1 = nn.reduce sum %0 dims = [0, 1] : tensor<8x4xf32> -> tensor<f32>
  return %0, %1 : tensor<8x4xf32>, tensor<f32>
}

// An op that opens a stage of the pipeline and is not needed leaves the stage to the op behind it, unless that opens one itself.
// TRAIN-LABEL: func.func @stages
// TRAIN: nn.relu {{.*}} {pipe.stage = 1 : i64}
// TRAIN-NEXT: nn.dropout {{.*}}pipe.stage = 2 : i64}
// TRAIN-NEXT: nn.exp %{{.*}} : tensor<8x4xf32>
// TRAIN-NEXT: nn.reduce
// INFER-LABEL: func.func @stages
// INFER: nn.relu {{.*}} {pipe.stage = 1 : i64}
// INFER-NEXT: nn.exp {{.*}} {pipe.stage = 2 : i64}
// INFER-NEXT: return
func.func @stages(%x: tensor<8x4xf32> {nn.input = "x"}) -> (tensor<8x4xf32> {nn.output = "y"}, tensor<f32> {nn.loss}) {
  %dead = nn.neg %x {pipe.stage = 1 : i64} : tensor<8x4xf32>
  %0 = nn.relu %x : tensor<8x4xf32>
  %unused = nn.neg %0 {pipe.stage = 1 : i64} : tensor<8x4xf32>
  %1 = nn.dropout %0 rate = 0.1 id = 0 {pipe.stage = 2 : i64} : tensor<8x4xf32>
  %2 = nn.exp %1 : tensor<8x4xf32>
  %3 = nn.reduce sum %2 dims = [0, 1] {pipe.stage = 3 : i64} : tensor<8x4xf32> -> tensor<f32>
  return %2, %3 : tensor<8x4xf32>, tensor<f32>
}
