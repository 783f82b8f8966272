#ifndef SHOAL_NN_ATTENTION_OPS
#define SHOAL_NN_ATTENTION_OPS

// Attention and its gradient. Included by NNOps.td, whose classes these ops are made with.

class NN_Attention<string mnemonic, list<Trait> traits = []>
    : Op<NN_Dialect, mnemonic, !listconcat(traits, [Pure, KnownAttributes, AttrSizedOperandSegments,
        DeclareOpInterfaceMethods<ShardingRuleOpInterface, ["getFlops", "localize"]>,
        DeclareOpInterfaceMethods<DifferentiableOpInterface>, DeclareOpInterfaceMethods<PositionedOpInterface>])> {
  // Query and key segments, or none; likewise positions.
  dag masks = (ins Variadic<NN_TensorOf<I64>>:$segments, Variadic<NN_TensorOf<I64>>:$positions, UnitAttr:$causal,
                   OptionalAttr<I64Attr>:$window, F64Attr:$scale);
  let hasVerifier = 1;
}

def NN_AttentionOp : NN_Attention<"attention", [AllTypesMatch<["k", "v"]>,
    TypesMatchWith<"lse has one number per query", "o", "lse", "::shoal::nn::AttentionOp::getLseType($_self)">]> {
  let summary = "softmax(scale * q k^T) v over the keys that a query may see";
  let description = [{
    `%o, %lse = nn.attention %q, %k, %v causal scale = 0.125 : (tensor<BxSxKVxGxExf32>, tensor<BxTxKVxExf32>, tensor<BxTxKVxExf32>) -> tensor<BxSxKVxGxExf32>`:
    KV key/value heads, each with G query heads (G = 1: multi-head attention; KV = 1: multi-query; Ainslie et al. 2023). Heads are
    dimensions of their own and never merged with E, so that any number of them can be sharded.

    Query i sees key j where all of these hold: `causal`: j <= i; `window = w`: i - j < w and j - i < w; `segments = %qs, %ks`
    (`tensor<BxSxi64>`, `tensor<BxTxi64>`): the segments are equal. With `causal` or `window`, S = T. `lse` [B,S,KV,G] is the logarithm
    of the sum of the exponentials of the scores, which the gradient needs (f32 where o is bf16). A query that sees nothing has o = 0 and
    lse = -inf. A key that a query does not see counts for nothing, as long as its k and v are finite.

    `positions = %qp, %kp` (`tensor<Sxi64>`, `tensor<Txi64>`, the same for all batch rows) are the places of the rows in the sequence,
    where q and k are parts of it or hold it in another order. `causal` and `window` are then judged by them instead of i and j, and S
    need not be T. They may stand in any order; tiles of scores are left out where those of the keys increase and no query of the tile
    sees any. A row with a negative position does not exist: a key that nobody sees, a query that sees nothing.

    o has the type of q, or the one that is computed in (f32 for bf16): parts of a sequence are merged in it and rounded once.

    A library call: blocked with an online softmax, so that scores exist a tile at a time (Dao et al. 2022).
  }];
  let arguments = !con((ins NN_FloatTensor:$q, NN_FloatTensor:$k, NN_FloatTensor:$v), masks);
  let results = (outs NN_FloatTensor:$o, NN_FloatTensor:$lse);
  let assemblyFormat = [{
    $q `,` $k `,` $v (`segments` `=` $segments^)? (`positions` `=` $positions^)? (`causal` $causal^)? (`window` `=` $window^)?
    `scale` `=` $scale attr-dict
    `:` `(` type(operands) `)` `->` type($o)
  }];
  let extraClassDeclaration = "static ::mlir::RankedTensorType getLseType(::mlir::Type o);";
}

def NN_AttentionGradOp : NN_Attention<"attention_grad", [AllTypesMatch<["k", "v"]>, AllTypesMatch<["dk", "dv"]>,
    AllTypesMatch<["cotangent", "o"]>]> {
  let summary = "cotangents of q, k and v of nn.attention";
  let description = [{
    `%dq, %dk, %dv = nn.attention_grad %do, %q, %k, %v, %o, %lse causal scale = 0.125 : (...) -> (...)`, from the cotangent of o and from what
    `nn.attention` read and made; scores are computed again from lse. dk and dv are sums over the query heads of a key/value head.
    dq, dk and dv have the type of q, or all three the one that is computed in (f32 for bf16), so that those of parts of a sequence
    add up before they are rounded.
    Made by `nn-differentiate`.
  }];
  let arguments = !con((ins NN_FloatTensor:$cotangent, NN_FloatTensor:$q, NN_FloatTensor:$k, NN_FloatTensor:$v, NN_FloatTensor:$o,
                            NN_FloatTensor:$lse), masks);
  let results = (outs NN_FloatTensor:$dq, NN_FloatTensor:$dk, NN_FloatTensor:$dv);
  let assemblyFormat = [{
    $cotangent `,` $q `,` $k `,` $v `,` $o `,` $lse (`segments` `=` $segments^)? (`positions` `=` $positions^)? (`causal` $causal^)?
    (`window` `=` $window^)? `scale` `=` $scale attr-dict `:` functional-type(operands, results)
  }];
}

#endif
