// A sequence that lies on several devices: in which order, and how attention over its parts is put together. Part of NNOps.td, which has the classes.

def NN_ZigzagOp : NN_PositionOp<"zigzag"> {
  let summary = "rows of a sequence in the order in which devices share the work of a causal mask evenly";
  let description = [{
    `nn.zigzag %x dim = 1 ranks = 2 : tensor<2x8xi64>` has the rows 0 1 6 7 2 3 4 5 of dimension 1: the n = ceil(size / ranks) rows of a rank
    are as many from the beginning of the sequence, where causal attention sees few keys, as from its end. With 2 * ranks chunks of equal size
    rank r has chunks r and 2 * ranks - 1 - r (the zigzag order of ring attention).

    It is a permutation for every size. Of the rows of a rank, n or what is left of the size, the first half, rounded up, follows that of the ranks
    before; the others are the last rows of the sequence that the ranks before left. Ranks past the end of a short sequence store nothing.
    `inverse` undoes it, which is the gradient.

    On a shard `offset = %o` is the place of its first row, set by the partitioner: `nn.zigzag %x dim = 1 ranks = 2 offset = %o :
    tensor<2x7xi64> -> tensor<2x4xi64>`. The input is whole in that dimension, and rows of the shard past the end are zeros. Where input and
    result lie on `ranks` devices and all chunks are of one size, there is no such shard: each device sends its even chunk to one device and its odd
    one to one.

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

def NN_MergeAttentionOp : NN_Op<"merge_attention", [AllTypesMatch<["o0", "o1", "o"]>,
    TypesMatchWith<"lse has one number per query", "o", "lse", "::shoal::nn::AttentionOp::getLseType($_self)">,
    TypesMatchWith<"lse0 has one number per query", "o", "lse0", "::shoal::nn::AttentionOp::getLseType($_self)">,
    TypesMatchWith<"lse1 has one number per query", "o", "lse1", "::shoal::nn::AttentionOp::getLseType($_self)">]> {
  let summary = "attention over the keys of two parts, from that over each";
  let description = [{
    `%o, %lse = nn.merge_attention %o0, %lse0, %o1, %lse1 : tensor<BxSxKVxGxExf32>`: of two results of `nn.attention` for the same queries and
    other keys, the result for all of the keys (Dao et al. 2022; Liu et al. 2023). With m the larger log-sum-exp and e the exponential of the
    other one less m, lse is m + log(1 + e), and o is the mean of o0 and o1 with weights 1 / (1 + e) and e / (1 + e): their sum is 1 however large
    the scores are. Where one lse is -inf, since a mask leaves the query none of those keys, the result is the other part, bit for bit; where
    both are, the first.

    In the type that is computed in, so that a chain of merges is rounded once, behind it. One kernel: a row of each part is read once. Made by
    the partitioner for attention over a sharded sequence, after differentiation; it has no gradient.
  }];
  let arguments = (ins NN_WideTensor:$o0, NN_WideTensor:$lse0, NN_WideTensor:$o1, NN_WideTensor:$lse1);
  let results = (outs NN_WideTensor:$o, NN_WideTensor:$lse);
  let assemblyFormat = "$o0 `,` $lse0 `,` $o1 `,` $lse1 attr-dict `:` type($o)";
  let hasVerifier = 1;
}
