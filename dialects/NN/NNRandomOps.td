// Random ops. Part of NNOps.td, which has the classes.

def NN_DropoutOp : NN_PositionOp<"dropout", [AllTypesMatch<["input", "result"]>, AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<TrainingModeOpInterface>, DeclareOpInterfaceMethods<RandomOpInterface>,
    DeclareOpInterfaceMethods<PositionedOpInterface>]> {
  let summary = "elements become 0 with probability `rate`, the others grow by 1 / (1 - rate)";
  let description = [{
    `nn.dropout %x rate = 0.1 id = 3 : tensor<32x64xf32>` (Srivastava et al. 2014). In inference it is the identity.

    Element i, counted row-major, is kept where the first word of Philox 4x32-10 (Salmon et al. 2011) with the key `seed` and the counter
    (i, id, step), i of 64 and the others of 32 bits, is at least floor(rate * 2^32). So the mask is one under every plan, and its gradient is
    the same op. Ids tell the ops of a model apart; `nn-seed` refuses two ops with one id. The upper word of `step`, 0 in any run, is added to the
    id: `exec-outline-kernels` moves ids there, so that equal layers share their kernels.

    `nn-seed` adds `seed = %seed step = %step`. The partitioner adds `offset = %o global = [32, 64]`: the index in the whole tensor of the first
    element of a shard, and the shape in which indices are counted.

    Rows that lie in another order than they are counted in say so: with `positions = %p dim = 1 : tensor<4x12x8xf32>, tensor<12xi64>` the index of
    row i along dimension 1 is its position, not i. Positions are those of the whole tensor, on a shard of its own rows, and the offset is that of the
    other dimensions. Strategies that reorder a sequence set them (`PositionedOpInterface`).
  }];
  let arguments = (ins NN_FloatTensor:$input, Optional<NN_IndexScalar>:$seed, Optional<NN_IndexScalar>:$step, Optional<NN_IndexScalar>:$offset,
                       Optional<NN_TensorOf<I64>>:$positions, F64Attr:$rate, I64Attr:$id, OptionalAttr<DenseI64ArrayAttr>:$global,
                       OptionalAttr<I64Attr>:$dim);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $input `rate` `=` $rate `id` `=` $id (`seed` `=` $seed^ `step` `=` $step)? (`offset` `=` $offset^)? (`global` `=` $global^)?
    (`positions` `=` $positions^ `dim` `=` $dim)? attr-dict `:` type($result) (`,` type($positions)^)?
  }];
  let hasVerifier = 1;
}
