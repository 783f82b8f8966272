// safetensors files: named tensors in one file. Ours hold whole logical tensors, so a
// file written under one plan is read under any other.
// Format: github.com/huggingface/safetensors, "Format".
#ifndef SHOAL_RT_CORE_SAFETENSORS_H
#define SHOAL_RT_CORE_SAFETENSORS_H

#include "core/element.h"
#include "core/file.h"

#include <map>
#include <string>
#include <vector>

namespace shoal::rt {

struct TensorEntry {
  FileType type;
  std::vector<uint64_t> shape;
  const unsigned char *data; // any alignment
};

class SafetensorsFile {
public:
  explicit SafetensorsFile(const std::string &path); // exit 2 on any other kind of file

  const std::string &path() const { return file_.path(); }
  const std::map<std::string, TensorEntry> &tensors() const { return tensors_; }
  const TensorEntry *find(const std::string &name) const;
  void checkWhole() const { file_.checkWhole(); }

private:
  MappedFile file_;
  std::map<std::string, TensorEntry> tensors_;
};

// Lays out a file: header first, then one tensor after the other. The data of tensor i
// goes to offsets()[i]. The header's metadata say format = pt, without which Hugging Face's
// transformers take no file.
struct TensorSpec {
  std::string name;
  FileType type;
  std::vector<uint64_t> shape;
};
class SafetensorsLayout {
public:
  explicit SafetensorsLayout(const std::vector<TensorSpec> &tensors);
  const std::string &header() const { return header_; }
  const std::vector<uint64_t> &offsets() const { return offsets_; }

private:
  std::string header_;
  std::vector<uint64_t> offsets_;
};

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_SAFETENSORS_H
