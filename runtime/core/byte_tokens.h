// Byte-level tokens: token i is byte i, so a vocabulary is 256 and no text needs a tokenizer. Makes the
// files of token ids that language models train on, and turns ids back into text.
#ifndef SHOAL_RT_CORE_BYTE_TOKENS_H
#define SHOAL_RT_CORE_BYTE_TOKENS_H

#include <cstdint>
#include <string>
#include <vector>

namespace shoal::rt {

inline constexpr uint64_t kByteVocabulary = 256;

// What `shoal-data bytes` is asked for.
struct ByteSamples {
  std::vector<std::string> texts; // files, one after the other
  uint64_t window = 0;            // tokens of a sample
  uint64_t validateEvery = 0;     // each so many-th sample is for validation; 0: none is
  std::string folder;             // made where it does not exist
};

// Files of one split. Label i of a sample is the token that follows token i; the text's last byte has none. The
// last sample is filled up with line ends, whose labels are kIgnoredLabel.
struct SampleFiles {
  std::string ids, labels; // paths
  uint64_t samples = 0;
};
inline constexpr int16_t kIgnoredLabel = -100; // as PyTorch's cross_entropy has it

struct ByteSamplesSummary {
  uint64_t files = 0, bytes = 0;
  SampleFiles training, validation;
  std::vector<std::string> notes;
};

// Writes FOLDER/{train,val}_{input_ids,labels}.npy: ids as u8, labels as i16, [samples, window]. Exit 2 for texts
// that cannot be read or are too short, and where none are for validation but files of an earlier run are. All files
// are on disk before one takes the place of an older one.
ByteSamplesSummary writeByteSamples(const ByteSamples &request);

// The ids of a .npy file of any shape as bytes, in the file's order. Exit 2 for what is no byte.
std::string textOfTokens(const std::string &path);

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_BYTE_TOKENS_H
