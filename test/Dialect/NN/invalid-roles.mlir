// RUN: shoal-opt %s -split-input-file -verify-diagnostics -o /dev/null

// Each fault is told where it is: of an argument, at its own line.
func.func @names(
    // expected-note @+1 {{argument 0 is here}}
    %a: tensor<2xf32> {nn.input = "x"},
    // expected-error @+1 {{'func.func' op argument 1 "x": argument names must be unique, got: that of argument 0}}
    %b: tensor<2xf32> {nn.param = #nn.param<"x", init = zeros>}) { return }

// -----

func.func @reserved(
    %a: tensor<2xf32> {nn.input = "x"},
    // expected-error @+1 {{'func.func' op argument 1: 'nn.param' name must not be empty, got: ""}}
    %b: tensor<2xf32> {nn.param = #nn.param<"", init = zeros>}) { return }

// -----

// expected-error @+1 {{argument 0 "step": must have one role, got: 2}}
func.func @roles(%a: tensor<i64> {nn.step, nn.valid_rows}) { return }

// -----

// expected-error @+1 {{'nn.step' needs tensor<i64>, got: 'tensor<f32>'}}
func.func @step(%a: tensor<f32> {nn.step}) { return }

// -----

// expected-error @+1 {{'nn.param' must be #nn.param, got: "w"}}
func.func @param(%a: tensor<4xf32> {nn.param = "w"}) { return }

// -----

// expected-error @+1 {{'func.func' op argument 0 "w": a parameter must be f32, f64 or bf16, got: 'tensor<4xi64>'}}
func.func @param(%a: tensor<4xi64> {nn.param = #nn.param<"w", init = zeros>}) { return }

// -----

// expected-error @+1 {{argument 0 "w": 'nn.master' is a unit attribute of a parameter of f32, got: 'tensor<4xbf16>'}}
func.func @master(%a: tensor<4xbf16> {nn.master, nn.param = #nn.param<"w", init = zeros>}) { return }

// -----

// expected-error @+1 {{'nn.master' is a unit attribute of a parameter of f32, got: 'tensor<4xf32>'}}
func.func @master(%a: tensor<4xf32> {nn.master, nn.input = "x"}) { return }

// -----

// expected-error @+1 {{'nn.input' needs elements of f32, f64, bf16, i32, i64 or i1, got: 'tensor<4xf16>'}}
func.func @half(%a: tensor<4xf16> {nn.input = "x"}) { return }

// -----

// expected-error @+1 {{'nn.input' needs elements of f32, f64, bf16, i32, i64 or i1, got: 'tensor<4xui8>'}}
func.func @bytes(%a: tensor<4xui8> {nn.input = "x"}) { return }

// -----

// expected-error @+1 {{'nn.state' needs elements of f32, f64, bf16, i32, i64 or i1, got: 'tensor<4xi8>'}}
func.func @state(%a: tensor<4xi8> {nn.state = #nn.state<"w.m", of = "w", init = 0.0>}) { return }

// -----

// expected-error @+1 {{a buffer must be f32, f64 or bf16, got: 'tensor<4xi64>'}}
func.func @buffer(%a: tensor<4xi64> {nn.buffer = #nn.buffer<"b", init = 0.0>}) { return }

// -----

// expected-error @+1 {{'nn.buffer' must be #nn.buffer, got: "b"}}
func.func @buffer(%a: tensor<4xf32> {nn.buffer = "b"}) { return }

// -----

// expected-error @+2 {{result 0 "b": must have the type of the argument it updates, 'tensor<4xf32>', got: 'tensor<2xf32>'}}
// expected-note @+1 {{argument 0 is here}}
func.func @buffer(%a: tensor<4xf32> {nn.buffer = #nn.buffer<"b", init = 0.0>}, %b: tensor<2xf32>) -> (tensor<2xf32> {nn.updates = "b"}) {
  return %b : tensor<2xf32>
}

// -----

// expected-error @+1 {{'nn.param' name must be valid UTF-8, got: "w\FF"}}
func.func @name(%a: tensor<4xf32> {nn.param = #nn.param<"w\FF", init = zeros>}) { return }

// -----

// expected-error @+1 {{'nn.param' name must not be empty, got: ""}}
func.func @name(%a: tensor<4xf32> {nn.param = #nn.param<"", init = zeros>}) { return }

// -----

// expected-error @+1 {{'nn.param' name must not be the one that safetensors files reserve, got: "__metadata__"}}
func.func @name(%a: tensor<4xf32> {nn.param = #nn.param<"__metadata__", init = zeros>}) { return }

// -----

// expected-error @+1 {{'nn.input' name must hold no control characters, got: "x\0A"}}
func.func @name(%a: tensor<4xf32> {nn.input = "x\n"}) { return }

// -----

// expected-error @+1 {{'nn.input' name must hold no '=', since the command line reads NAME=FILE, got: "a=b"}}
func.func @name(%a: tensor<4xf32> {nn.input = "a=b"}) { return }

// -----

// The names of arguments that have none in the text, whatever the others are.
// expected-error @+1 {{'nn.buffer' name must not be step, by which the count of steps is known (nn.step), got: "step"}}
func.func @step(%a: tensor<f32> {nn.buffer = #nn.buffer<"step", init = 0.0>}) { return }

// -----

// expected-error @+1 {{'nn.param' name must not be seed, by which the key of random ops is known (nn.seed), got: "seed"}}
func.func @seed(%a: tensor<f32> {nn.param = #nn.param<"seed", init = zeros>}) { return }

// -----

// expected-error @+1 {{'nn.input' name must not be valid_rows, by which the number of real rows is known (nn.valid_rows), got: "valid_rows"}}
func.func @rows(%a: tensor<f32> {nn.input = "valid_rows"}) { return }

// -----

// expected-error @+1 {{result 0 "eval_loss": 'nn.metric' name must not be eval_loss, which lines of evaluations have, got: "eval_loss"}}
func.func @evaluation(%a: tensor<f32>) -> (tensor<f32> {nn.metric = "eval_loss"}) { return %a : tensor<f32> }

// -----

// expected-error @+1 {{'nn.metric' name must not be step, epoch, loss or wall_s, which every line of metrics has, got: "wall_s"}}
func.func @metric(%a: tensor<f32>) -> (tensor<f32> {nn.metric = "wall_s"}) { return %a : tensor<f32> }

// -----

// expected-error @+1 {{result 1 "y": 'nn.output' names must be unique, got: that of result 0}}
func.func @outputs(%a: tensor<f32>) -> (tensor<f32> {nn.output = "y"}, tensor<f32> {nn.output = "y"}) { return %a, %a : tensor<f32>, tensor<f32> }

// -----

// expected-error @+1 {{unknown argument attribute 'nn.inputs'}}
func.func @typo(%a: tensor<4xf32> {nn.inputs = "x"}) { return }

// -----

// expected-error @+1 {{'nn.input' needs a tensor of static shape, got: 'tensor<?xf32>'}}
func.func @dynamic(%a: tensor<?xf32> {nn.input = "x"}) { return }

// -----

// expected-error @+1 {{initial distribution must be one of zeros, ones, constant, uniform, normal, kaiming_uniform, xavier_uniform, got: he}}
func.func @init(%a: tensor<4xf32> {nn.param = #nn.param<"w", init = he>}) { return }

// -----

// expected-error @+1 {{uniform must have its lower bound first, got: (}}
func.func @bounds(%a: tensor<4xf32> {nn.param = #nn.param<"w", init = uniform(1.0, -1.0)>}) { return }

// -----

// expected-error @+1 {{normal must have a standard deviation of at least 0, got: -}}
func.func @deviation(%a: tensor<4xf32> {nn.param = #nn.param<"w", init = normal(0.0, -1.0)>}) { return }

// -----

// expected-error @+1 {{must be a finite number}}
func.func @finite(%a: tensor<4xf32> {nn.param = #nn.param<"w", init = constant(1.0e+999)>}) { return }

// -----

// expected-error @+1 {{result 0: 'nn.loss' needs a scalar float tensor, got: 'tensor<2xf32>'}}
func.func @loss(%a: tensor<2xf32>) -> (tensor<2xf32> {nn.loss}) { return %a : tensor<2xf32> }

// -----

// expected-error @+1 {{result 1: one result is the loss, got: result 0, too}}
func.func @losses(%a: tensor<f32>) -> (tensor<f32> {nn.loss}, tensor<f32> {nn.loss}) { return %a, %a : tensor<f32>, tensor<f32> }

// -----

// expected-error @+1 {{result 0 "v": updates an unknown argument: "v"}}
func.func @updates(%a: tensor<4xf32> {nn.param = #nn.param<"w", init = zeros>}) -> (tensor<4xf32> {nn.updates = "v"}) { return %a : tensor<4xf32> }

// -----

// expected-error @+2 {{result 0 "w": must have the type of the argument it updates, 'tensor<4xf32>', got: 'tensor<f32>'}}
// expected-note @+1 {{argument 0 is here}}
func.func @updates(%a: tensor<4xf32> {nn.param = #nn.param<"w", init = zeros>}, %s: tensor<f32>) -> (tensor<f32> {nn.updates = "w"}) { return %s : tensor<f32> }

// -----

// expected-error @+1 {{argument 0 "w": is updated by results 0 and 1}}
func.func @updates(%a: tensor<4xf32> {nn.param = #nn.param<"w", init = zeros>}) -> (tensor<4xf32> {nn.updates = "w"}, tensor<4xf32> {nn.updates = "w"}) { return %a, %a : tensor<4xf32>, tensor<4xf32> }

// -----

// expected-error @+1 {{the shape in files must have as many elements as 'tensor<3x4xf32>', got: [3, 5]}}
func.func @file_shape(%w: tensor<3x4xf32> {nn.param = #nn.param<"w", init = zeros, file = [3, 5]>}) {
  return
}

// -----

// expected-error @+1 {{sizes of the shape in files must be at least 1, got: -3}}
func.func @file_shape(%w: tensor<3x4xf32> {nn.param = #nn.param<"w", init = zeros, file = [-3, -4]>}) {
  return
}

// -----

// expected-error @+1 {{the shape in files must have dimensions, got: []}}
func.func @file_shape(%w: tensor<1xf32> {nn.param = #nn.param<"w", init = zeros, file = []>}) {
  return
}

// -----

// Sizes whose product wraps to the number of elements.
// expected-error @+1 {{the shape in files must have as many elements as 'tensor<4xf32>'}}
func.func @file_shape(%w: tensor<4xf32> {nn.param = #nn.param<"w", init = zeros, file = [4294967296, 4294967296, 4]>}) {
  return
}

// -----

// The batch is one of the dimensions.
// expected-error @+1 {{'nn.batch_dim' must be a dimension of 'tensor<2xf32>', got: 1}}
func.func @batch(%x: tensor<2xf32> {nn.input = "x"}) -> (tensor<2xf32> {nn.output = "y", nn.batch_dim = 1 : i64}) {
  return %x : tensor<2xf32>
}

// -----

// The seed is a scalar of 64 bits.
// expected-error @+1 {{'nn.seed' needs tensor<i64>, got: 'tensor<2xi64>'}}
func.func @seed(%s: tensor<2xi64> {nn.seed}) {
  return
}

// -----

// expected-error @+1 {{'nn.indices' must be #nn.indices, got: 4 : i64}}
func.func @indices(%i: tensor<3xi64> {nn.input = "i", nn.indices = 4}) { return }

// -----

// expected-error @+1 {{argument 0 "i": 'nn.indices' belongs to an input of i32 or i64, got: 'tensor<3xf32>'}}
func.func @indices(%i: tensor<3xf32> {nn.input = "i", nn.indices = #nn.indices<4>}) { return }

// -----

// expected-error @+1 {{argument 0 "step": 'nn.indices' belongs to an input of i32 or i64, got: no input, 'tensor<i64>'}}
func.func @indices(%i: tensor<i64> {nn.step, nn.indices = #nn.indices<4>}) { return }

// -----

// expected-error @+1 {{indices must be of at least 1 row or class, got: 0}}
func.func @indices(%i: tensor<3xi64> {nn.input = "i", nn.indices = #nn.indices<0>}) { return }
