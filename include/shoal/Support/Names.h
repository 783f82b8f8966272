// Names that a model gives to its values and mesh axes. They end up in JSON, in safetensors files and on command
// lines, so each dialect refuses what cannot stand there.
#ifndef SHOAL_SUPPORT_NAMES_H
#define SHOAL_SUPPORT_NAMES_H

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"

namespace shoal {

/// The rule that a name breaks, to be put behind "... name must"; empty when it is fine.
inline llvm::StringRef brokenNameRule(llvm::StringRef name) {
  if (name.empty())
    return "not be empty";
  if (!llvm::json::isUTF8(name))
    return "be valid UTF-8";
  for (char c : name)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      return "hold no control characters";
  return {};
}

} // namespace shoal

#endif // SHOAL_SUPPORT_NAMES_H
