#ifndef SHOAL_DIST_COLLECTIVE_OP_INTERFACE
#define SHOAL_DIST_COLLECTIVE_OP_INTERFACE

include "mlir/IR/OpBase.td"

def CollectiveOpInterface : OpInterface<"CollectiveOpInterface"> {
  let cppNamespace = "::shoal::dist";
  let description = [{
    An L2 op of the devices along mesh axes: collectives, messages between two of them, barriers. Passes ask
    this instead of naming ops, so that a new collective changes none of them.
  }];
  let methods = [
    InterfaceMethod<"The mesh axes of the group, major to minor.", "::shoal::dist::AxesAttr", "getAxesAttr">,
    InterfaceMethod<"Which annotation and which op caused it: #dist.reason, or a string by hand; null when it says nothing.",
      "::mlir::Attribute", "getReasonAttr">,
    InterfaceMethod<"Whether devices exchange anything.", "bool", "communicates", (ins), "", [{ return true; }]>,
    InterfaceMethod<"Whether it gives back its operand where a group is one device.",
      "bool", "isIdentityAlone", (ins), "", [{ return false; }]>,
    InterfaceMethod<"How it combines what devices hold; nothing when it only moves it.",
      "::std::optional<::shoal::dist::ReduceKindAttrEnum>", "getReduction", (ins), "", [{ return ::std::nullopt; }]>,
  ];
}

#endif
