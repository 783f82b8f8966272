// A sequence that lies on several devices: in which order. Part of NNOps.td, which has the classes.

def NN_ZigzagOp : NN_PositionOp<"zigzag"> {
  let summary = "rows of a sequence in the order in which devices share the work of a causal mask evenly";
  let description = [{
    `nn.zigzag %x dim = 1 ranks = 2 : tensor<2x8xi64>` has the rows 0 1 6 7 2 3 4 5 of dimension 1: the n = ceil(size / ranks) rows of a rank
    are as many from the beginning of the sequence, where causal attention sees few keys, as from its end. With 2 * ranks chunks of equal size
    rank r has chunks r and 2 * ranks - 1 - r (the field's zigzag or striped ring attention).

    It is a permutation for every size. Of the rows of a rank, n or what is left of the size, the first half, rounded up, follows that of the ranks
    before; the others are the last rows of the sequence that the ranks before left. Ranks past the end of a short sequence store nothing.
    `inverse` undoes it, which is the gradient.

    On a shard `offset = %o` is the place of its first row, set by the partitioner: `nn.zigzag %x dim = 1 ranks = 2 offset = %o :
    tensor<2x7xi64> -> tensor<2x4xi64>`. The input is whole in that dimension, and rows of the shard past the end are zeros.

    Made by `dist-context-parallel`, on what enters and leaves the sequence.
  }];
  let arguments = (ins NN_Tensor:$input, Optional<NN_IndexScalar>:$offset, I64Attr:$dim, I64Attr:$ranks, UnitAttr:$inverse);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = [{
    $input `dim` `=` $dim `ranks` `=` $ranks (`inverse` $inverse^)? (`offset` `=` $offset^)? attr-dict
    `:` custom<PartType>(type($input), type($result))
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
  let extraClassDeclaration = [{
    /// The order of the whole dimension.
    ::shoal::nn::Zigzag getOrder();
  }];
}
