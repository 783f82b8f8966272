// Programs that predict tokens: what --generate needs of a program, whatever its model is.
#ifndef SHOAL_RT_CORE_TOKEN_MODEL_H
#define SHOAL_RT_CORE_TOKEN_MODEL_H

#include "core/byte_tokens.h"
#include "core/program.h"

#include <optional>

namespace shoal::rt {

// Its one input holds token ids, [rows, window]; its one output is logits of the token that follows each,
// [rows, window, classes].
struct TokenModel {
  const Arg *ids;
  const Result *logits;
  uint64_t rows, window, classes;

  // Whether tokens are bytes, as `shoal-data bytes` makes them.
  bool isOfBytes() const { return classes == kByteVocabulary; }
};

// Nothing where the program is none; then `why` says what was expected and what it has.
std::optional<TokenModel> findTokenModel(const Program &program, std::string &why);

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_TOKEN_MODEL_H
