#ifndef SHOAL_PIPE_ATTRS
#define SHOAL_PIPE_ATTRS

include "PipeDialect.td"
include "mlir/IR/EnumAttr.td"

// The enum itself is of the library of schedules, which knows no IR: see shoal/Schedule/Schedule.h.
def Pipe_PlacementEnum : I32EnumAttr<"Placement", "how the stages lie on the ranks",
                                     [I32EnumAttrCase<"Loop", 0, "loop">, I32EnumAttrCase<"Vee", 1, "vee">]> {
  let cppNamespace = "::shoal::pipe";
  let genSpecializedAttr = 0;
}

def Pipe_PlacementAttr : EnumAttr<Pipe_Dialect, Pipe_PlacementEnum, "placement"> {
  let description = [{
    With P ranks, `loop`: stage k on rank k mod P. `vee`: every second chunk of stages runs back, so that with two
    chunks rank r has the stages r and 2P-1-r.
  }];
}

// An ActionKind; see shoal/Schedule/Schedule.h.
def Pipe_PartEnum : I32EnumAttr<"Part", "what a stage computes of a micro-batch in one go", [
    I32EnumAttrCase<"Forward", 0, "forward">, I32EnumAttrCase<"Backward", 1, "backward">,
    I32EnumAttrCase<"BackwardInput", 2, "backward_input">, I32EnumAttrCase<"BackwardWeight", 3, "backward_weight">]> {
  let cppNamespace = "::shoal::pipe";
  let genSpecializedAttr = 0;
}

def Pipe_PartAttr : EnumAttr<Pipe_Dialect, Pipe_PartEnum, "part"> {
  let description = "As a word in `pipe.call`.";
}

#endif
