// Rotary position embedding. Part of NNOps.td, which has the classes.

def NN_RopeOp : NN_DecomposableOp<"rope", [AllTypesMatch<["input", "result"]>]> {
  let summary = "rotation of pairs of elements by angles that grow with the position";
  let description = [{
    `nn.rope %x, %positions base = 10000.0 : tensor<2x8x3x6xf32>, tensor<8xi64>`: dimension 1 of x is the sequence, the last one, of E
    elements, is rotated. Elements j and j + E/2 are a pair, turned by `position * base^(-2j/E)` (Su et al. 2021, in the order of Llama's
    checkpoints). Positions are those of the sequence, or of each sequence: tensor<2x8xi64>. `inverse` turns back, which is the
    gradient. Other dimensions (heads) turn alike.

    Canonical form is `nn.rope_table` and `nn.rotate`, so that one table serves all heads, layers and directions.
  }];
  let arguments = (ins NN_FloatTensor:$input, NN_IntTensor:$positions, F64Attr:$base, UnitAttr:$inverse);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$input `,` $positions `base` `=` $base attr-dict `:` type($input) `,` type($positions)";
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
}

def NN_RopeTableOp : NN_Op<"rope_table", [TypesMatchWith<"cosines and sines have one type", "cos", "sin", "$_self">]> {
  let summary = "cosines and sines of the angles of nn.rope";
  let description = [{
    `%cos, %sin = nn.rope_table %positions base = 10000.0 : tensor<8xi64> -> tensor<8x3xf32>`: one row per position, one column per pair of
    elements. Angles are computed, and their multiples of pi/2 taken away, in f64 whatever the type is: a position of 10^5 in f32 has no
    digits left below a hundredth. Made from `nn.rope` by canonicalization, consumed by `nn.rotate`.
  }];
  let arguments = (ins NN_IntTensor:$positions, F64Attr:$base);
  let results = (outs NN_FloatTensor:$cos, NN_FloatTensor:$sin);
  let assemblyFormat = "$positions `base` `=` $base attr-dict `:` type($positions) `->` type($cos)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// base^(-j/pairs), per pair j.
    ::llvm::SmallVector<double> getFrequencies();
  }];
}

def NN_RotateOp : NN_Op<"rotate", [AllTypesMatch<["input", "result"]>, AllTypesMatch<["cos", "sin"]>]> {
  let summary = "rotation of pairs by a table of cosines and sines";
  let description = [{
    `nn.rotate %x, %cos, %sin : tensor<2x8x3x2x4xf32>, tensor<8x4xf32>`: the two elements of a pair lie along the dimension before the last, so
    `y[..,0,j] = x[..,0,j] cos - x[..,1,j] sin` and `y[..,1,j] = x[..,1,j] cos + x[..,0,j] sin`. Tables are of the sequence, dimension 1
    of x, or of each sequence (tensor<2x8x4xf32>), in the type that is computed in: f32 for bf16. `inverse` turns back.
    Made from `nn.rope` by canonicalization.
  }];
  let arguments = (ins NN_FloatTensor:$input, NN_FloatTensor:$cos, NN_FloatTensor:$sin, UnitAttr:$inverse);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$input `,` $cos `,` $sin attr-dict `:` type($input) `,` type($cos)";
  let hasVerifier = 1;
}
