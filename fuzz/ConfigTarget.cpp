// A model's config.json: it is read, with every size in its bounds, or refused with one line.
#include "Target.h"
#include "shoal/Models/Config.h"

using namespace shoal;

namespace {

bool isSize(int64_t size) { return size >= 1 && size <= int64_t(1) << 26; }

void requireLine(bool isRead, const std::string &error) {
  if (isRead)
    return fuzz::require(error.empty(), "a config that is read must bring no error");
  fuzz::require(!error.empty(), "a config that is refused must say why");
  for (unsigned char c : error)
    fuzz::require(c >= 0x20 && c != 0x7f, "an error must be one line of text");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  for (models::Dropout dropout : {models::Dropout::Config, models::Dropout::Off}) {
    std::string error;
    auto gpt2 = models::parseGpt2Config(text, dropout, error);
    requireLine(gpt2.has_value(), error);
    if (gpt2) {
      for (int64_t size : {gpt2->vocab, gpt2->positions, gpt2->hidden, gpt2->heads, gpt2->layers, gpt2->inner})
        fuzz::require(isSize(size), "sizes must be in their bounds");
      fuzz::require(gpt2->headSize() * gpt2->heads == gpt2->hidden, "heads must divide the hidden size");
      fuzz::require(dropout == models::Dropout::Config || (gpt2->embeddingDropout == 0 && gpt2->residualDropout == 0),
                    "--dropout off must leave no dropout");
    }
    auto llama = models::parseLlamaConfig(text, dropout, error);
    requireLine(llama.has_value(), error);
    if (llama) {
      for (int64_t size : {llama->vocab, llama->positions, llama->hidden, llama->heads, llama->kvHeads,
                           llama->headSize, llama->layers, llama->inner, llama->window.value_or(1)})
        fuzz::require(isSize(size), "sizes must be in their bounds");
      fuzz::require(llama->heads % llama->kvHeads == 0 && llama->headSize % 2 == 0,
                    "heads must divide and be of even size");
    }
  }
  return 0;
}
