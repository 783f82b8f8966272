// What --load names: one safetensors file, or the index of several, which is how large models are
// kept (Hugging Face's model.safetensors.index.json). To a program they are one set of tensors.
#ifndef SHOAL_RT_CORE_PARAMETER_FILES_H
#define SHOAL_RT_CORE_PARAMETER_FILES_H

#include "core/safetensors.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace shoal::rt {

struct FoundTensor {
  const TensorEntry *tensor;
  const std::string &path; // of the file that holds it
};

class ParameterFiles {
public:
  // A path that ends in ".json" is an index, whose files lie beside it. Exit 2 on any other kind of
  // file, and when the index and the files do not name the same tensors.
  explicit ParameterFiles(const std::string &path);

  const std::string &path() const { return path_; }
  const std::map<std::string, FoundTensor> &tensors() const { return tensors_; }

  // The tensor of a parameter. Hugging Face keeps a model with or without the prefix of its
  // base model, "transformer." or "model.": files in which no name begins with the parameter's
  // prefix are asked without it.
  const FoundTensor *find(const std::string &name) const;
  void checkWhole() const;

  // The files that `path` stands for: itself, and those that it indexes.
  static std::vector<std::string> list(const std::string &path);

private:
  std::string path_;
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, FoundTensor> tensors_;
};

// What names of all layers have in common: "h.*.attn.bias" of "h.11.attn.bias".
std::string namePattern(const std::string &name);
// Names as patterns, for a line to read: "h.0.attn.bias" to "h.11.attn.bias" are "h.*.attn.bias"
// (12 of them). The first few patterns.
std::string namePatterns(const std::vector<std::string> &names);

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_PARAMETER_FILES_H
