// Changes of MLIR text that often leave it valid: whole tokens and lines instead of bytes.
#ifndef SHOAL_FUZZ_MLIRMUTATOR_H
#define SHOAL_FUZZ_MLIRMUTATOR_H

#include <string>

namespace shoal::fuzz {

/// One to four random changes; the same for the same seed.
std::string mutate(const std::string &text, unsigned seed);

/// `text` with some lines of `other`.
std::string mix(const std::string &text, const std::string &other, unsigned seed);

} // namespace shoal::fuzz

#endif // SHOAL_FUZZ_MLIRMUTATOR_H
