#ifndef SHOAL_EXEC_ATTENTION_OPS
#define SHOAL_EXEC_ATTENTION_OPS

// Rows of attention. Included by ExecOps.td, whose classes these ops are made with.

def Exec_AttentionOp : Exec_LibraryRow<"attention", [AttrSizedOperandSegments]> {
  let summary = "softmax(scale * q k^T) v with its log-sum-exp, blocked";
  let description = [{
    `exec.attention %q, %k, %v into %o, %lse workspace %w causal scale = 0.125 : (...)`, of `nn.attention`; sizes are those of the buffers.
  }];
  let arguments = !con((ins Exec_BufferType:$q, Exec_BufferType:$k, Exec_BufferType:$v, Variadic<Exec_BufferType>:$segments,
                            Variadic<Exec_BufferType>:$positions, Exec_BufferType:$o, Exec_BufferType:$lse, Exec_BufferType:$workspace, UnitAttr:$causal,
                            OptionalAttr<I64Attr>:$window, F64Attr:$scale), rowArguments);
  let assemblyFormat = [{
    $q `,` $k `,` $v (`segments` `=` $segments^)? (`positions` `=` $positions^)? `into` $o `,` $lse `workspace` $workspace
    (`causal` $causal^)? (`window` `=` $window^)? `scale` `=` $scale (`stream` $stream^)? attr-dict `:` `(` type(operands) `)` (`->` type($token)^)?
  }];
  let hasVerifier = 1;
}

def Exec_AttentionGradOp : Exec_LibraryRow<"attention_grad", [AttrSizedOperandSegments]> {
  let summary = "cotangents of q, k and v, blocked";
  let description = [{
    `exec.attention_grad %do, %q, %k, %v, %o, %lse into %dq, %dk, %dv workspace %w causal scale = 0.125 : (...)`, of `nn.attention_grad`.
  }];
  let arguments = !con((ins Exec_BufferType:$cotangent, Exec_BufferType:$q, Exec_BufferType:$k, Exec_BufferType:$v, Exec_BufferType:$o,
                            Exec_BufferType:$lse, Variadic<Exec_BufferType>:$segments, Variadic<Exec_BufferType>:$positions,
                            Exec_BufferType:$dq, Exec_BufferType:$dk, Exec_BufferType:$dv, Exec_BufferType:$workspace, UnitAttr:$causal,
                            OptionalAttr<I64Attr>:$window, F64Attr:$scale), rowArguments);
  let assemblyFormat = [{
    $cotangent `,` $q `,` $k `,` $v `,` $o `,` $lse (`segments` `=` $segments^)? (`positions` `=` $positions^)? `into` $dq `,` $dk `,` $dv
    `workspace` $workspace (`causal` $causal^)? (`window` `=` $window^)? `scale` `=` $scale (`stream` $stream^)? attr-dict
    `:` `(` type(operands) `)` (`->` type($token)^)?
  }];
  let hasVerifier = 1;
}

#endif
