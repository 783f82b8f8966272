#ifndef SHOAL_INTERPRETER_PASSES
#define SHOAL_INTERPRETER_PASSES

include "mlir/Pass/PassBase.td"

def InterpretPass : Pass<"interpret", "::mlir::ModuleOp"> {
  let summary = "run a function with the reference interpreter and print its results";
  let description = [{
    For tests, and to see what a program computes. Parameters start by their distribution, inputs are random; both are functions of
    `seed`. Results that `nn.updates` an argument are fed back, so `steps` trains. The IR stays as it is; the values go to standard output:

    ```
    // shoal-opt --interpret="steps=2" model.mlir -o /dev/null
    step 0 result 0 (loss): tensor<f32> sum 2.30258 sumsq 5.3019 [2.30258]
    step 1 result 0 (loss): tensor<f32> sum 2.29871 sumsq 5.28405 [2.29871]
    ```

    With `all-ranks` the function is an L2 program: it runs on every rank of the module's mesh, and each line names the rank.
    Arguments without `dist.global` (hand-written programs) have the same value on all ranks. `outputs` prints the text that the compiled program prints
    with `--print`, so that the two can be compared:

    ```
    // shoal-opt --interpret="all-ranks outputs" all-reduce-4.mlir -o /dev/null
    rank 0 after: [6, 10, 14, 18]
    ```
  }];
  let options = [
    Option<"function", "function", "std::string", "", "the function; by default the module's model, or its only function">,
    Option<"seed", "seed", "uint64_t", "1", "of parameters and inputs">,
    Option<"steps", "steps", "unsigned", "1", "how often to run it">,
    Option<"precision", "precision", "std::string", "\"program\"", "program: round to the element type after every op; f64: never">,
    Option<"allRanks", "all-ranks", "bool", "false", "run an L2 program on every rank of the mesh">,
    Option<"outputs", "outputs", "bool", "false", "print only the outputs, whole, as a compiled program does with --print">,
    Option<"elements", "elements", "unsigned", "8", "how many elements of a result to print">,
  ];
}

def DistVerifyPlanPass : Pass<"dist-verify-plan", "::mlir::ModuleOp"> {
  let summary = "compare a local program on all ranks with the global one on one device";
  let description = [{
    The proof that a plan kept the meaning. Runs the module (L2, after `dist-partition` or any pass up to `dist-expand-collectives`) on all
    ranks, and the L1 module in `reference` on one device, with the same random parameters and inputs, for some steps. Values are compared wherever a
    local op says by `dist.globals` which global value it is a piece of, and at the function's results. The error names the first op, in the
    order of L1, whose value differs:

    ```
    model.mlir:9:8: error: the plan differs from one device first at nn.sgd_update (dist.id 12): element [0, 3] on rank 1 is 0.25, one device has 0.5 (step 0)
    ```

    Ops inside `dist.accumulate` are compared micro-batch by micro-batch, which holds the same rows under every plan; once the region is unrolled
    (`dist-expand-collectives`) they say in `dist.microbatch` of which they are. Both begin each step with the state of the one device.

    An element may be off by `tolerance` of its tensor's root mean square, by the rounding of what it is made of (a sum that is mathematically 0 is
    nothing else), and a parameter by what its update makes of such a difference of its gradient: Adam divides by the gradient's own size.
  }];
  let options = [
    Option<"reference", "reference", "std::string", "", "file that holds the L1 module, numbered by dist-number">,
    Option<"function", "function", "std::string", "", "the function; by default every function of the module">,
    Option<"seed", "seed", "uint64_t", "1", "of parameters and inputs">,
    Option<"steps", "steps", "unsigned", "3", "training steps; odd ones have a short batch">,
    Option<"precision", "precision", "std::string", "\"f64\"", "f64, or program: round to the element type after every op">,
    Option<"tolerance", "tolerance", "double", "0.0", "against the root mean square of a tensor; 0: 1e-10 in f64, else 1e-4">,
  ];
  let dependentDialects = ["::shoal::dist::DistDialect"];
}

#endif
