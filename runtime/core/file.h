// Files as the runtime needs them: a read-only mapping, and an output that appears under
// its name only once it is complete.
#ifndef SHOAL_RT_CORE_FILE_H
#define SHOAL_RT_CORE_FILE_H

#include <cstddef>
#include <cstdint>
#include <string>

namespace shoal::rt {

class MappedFile {
public:
  explicit MappedFile(const std::string &path); // exit 2 when it cannot be read
  ~MappedFile();
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;

  const std::string &path() const { return path_; }
  const unsigned char *data() const { return data_; }
  uint64_t size() const { return size_; }

private:
  std::string path_;
  const unsigned char *data_ = nullptr;
  uint64_t size_ = 0;
};

// Writes PATH.partial and renames it to PATH on commit(). Opening it early finds a wrong
// path before the work is done; without commit() nothing is left behind. A device or pipe is
// not replaced: it is written on commit().
class OutputFile {
public:
  explicit OutputFile(const std::string &path); // exit 2 when it cannot be made
  ~OutputFile();
  OutputFile(const OutputFile &) = delete;
  OutputFile &operator=(const OutputFile &) = delete;

  const std::string &path() const { return path_; }
  void write(const void *bytes, uint64_t size, uint64_t offset); // exit 1 when it fails
  void append(const std::string &text);
  void commit();

private:
  std::string path_;    // as the user named it
  std::string target_;  // links followed
  std::string partial_; // empty for a device or pipe
  std::string stream_;  // what a device or pipe gets on commit()
  int fd_ = -1;
  uint64_t end_ = 0;
};

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_FILE_H
