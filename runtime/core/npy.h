// NumPy's .npy files, versions 1 to 3, little-endian and row-major: read in place,
// written by boxes. Format: numpy.lib.format.
#ifndef SHOAL_RT_CORE_NPY_H
#define SHOAL_RT_CORE_NPY_H

#include "core/element.h"
#include "core/file.h"

#include <span>
#include <string>
#include <vector>

namespace shoal::rt {

class NpyFile {
public:
  explicit NpyFile(const std::string &path); // exit 2 on any other kind of file

  const std::string &path() const { return file_.path(); }
  FileType type() const { return type_; }
  const std::vector<uint64_t> &shape() const { return shape_; }
  const unsigned char *data() const { return data_; } // any alignment
  void checkWhole() const { file_.checkWhole(); }

private:
  void parseHeader(std::string_view header);

  MappedFile file_;
  FileType type_ = FileType::F32;
  std::vector<uint64_t> shape_;
  const unsigned char *data_ = nullptr;
};

// The bytes before the data; bf16, which NumPy lacks, is not accepted.
std::string npyHeader(FileType type, std::span<const uint64_t> shape);

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_NPY_H
