// Normalisation of rows: over the last dimension. Part of NNOps.td, which has the classes.

class NN_RowNorm<string mnemonic, list<Trait> traits = []> : NN_DecomposableOp<mnemonic, !listconcat(traits, [
    DeclareOpInterfaceMethods<InferTypeOpInterface>, DeclareOpInterfaceMethods<BatchStatisticsOpInterface>])> {
  let hasVerifier = 1;
}

def NN_LayerNormOp : NN_RowNorm<"layer_norm", [AllTypesMatch<["scale", "bias"]>]> {
  let summary = "normalisation over the last dimension: mean 0, variance 1, then scale and bias";
  let description = [{
    `%y, %mean, %rstd = nn.layer_norm %x, %scale, %bias eps = 1.0e-5 : tensor<4x6x8xf32>, tensor<8xf32>` is
    `(x - mean) * rstd * scale + bias` with `rstd = 1 / sqrt(var + eps)` and the biased variance (Ba, Kiros & Hinton 2016). Mean and rstd are
    those of each row, here tensor<4x6xf32>, in the type that is computed in: f32 for bf16. The gradient reads them.

    Where the last dimension is sharded, the partitioner makes it sums over rows, all-reduced, and elementwise ops. They are divided by
    the size of the whole dimension.
  }];
  let arguments = (ins NN_FloatTensor:$input, NN_FloatTensor:$scale, NN_FloatTensor:$bias, F64Attr:$eps);
  let results = (outs NN_FloatTensor:$result, NN_FloatTensor:$mean, NN_FloatTensor:$rstd);
  let assemblyFormat = "$input `,` $scale `,` $bias `eps` `=` $eps attr-dict `:` type($input) `,` type($scale)";
}

def NN_RmsNormOp : NN_RowNorm<"rms_norm"> {
  let summary = "division by the root mean square of the last dimension, then scale";
  let description = [{
    `%y, %rstd = nn.rms_norm %x, %scale eps = 1.0e-5 : tensor<4x6x8xf32>, tensor<8xf32>` is `x * rstd * scale` with
    `rstd = 1 / sqrt(mean(x^2) + eps)` (Zhang & Sennrich 2019). All else as in `nn.layer_norm`.
  }];
  let arguments = (ins NN_FloatTensor:$input, NN_FloatTensor:$scale, F64Attr:$eps);
  let results = (outs NN_FloatTensor:$result, NN_FloatTensor:$rstd);
  let assemblyFormat = "$input `,` $scale `eps` `=` $eps attr-dict `:` type($input) `,` type($scale)";
}
