// Names that are equal but for their numbers, as one: "h.{0…11}.ln_1.weight".
#ifndef SHOAL_SUPPORT_FOLDEDNAMES_H
#define SHOAL_SUPPORT_FOLDEDNAMES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace shoal {

/// The name with a mark in place of every number: equal for names that may be folded.
std::string maskNumbers(llvm::StringRef name);

/// Texts of equal `maskNumbers` as one; numbers that differ stand in braces, or are a star where the reader knows
/// them.
std::string foldNames(llvm::ArrayRef<std::string> names);
std::string starNames(llvm::ArrayRef<std::string> names);

/// "h.0", "h.0 and h.1", "h.0 … h.11", in the order given.
std::string spanNames(llvm::ArrayRef<std::string> names);

} // namespace shoal

#endif // SHOAL_SUPPORT_FOLDEDNAMES_H
