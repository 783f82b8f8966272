#ifndef SHOAL_KNOWN_ATTRIBUTES
#define SHOAL_KNOWN_ATTRIBUTES

include "mlir/IR/OpBase.td"

// Of every op of our dialects: its attributes are its own or of a dialect; see shoal/Interfaces/KnownAttributes.h.
def KnownAttributes : NativeOpTrait<"KnownAttributes"> {
  let cppNamespace = "::shoal";
}

#endif
