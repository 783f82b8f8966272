// Read-only mappings and outputs that appear complete or not at all.
#include "core/file.h"
#include "core/error.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace shoal::rt {

MappedFile::MappedFile(const std::string &path) : path_(path) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    badInput(path, ": cannot be opened: ", std::strerror(errno));
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(fd);
    badInput(path, ": is not a regular file");
  }
  size_ = uint64_t(info.st_size);
  if (size_ != 0) {
    void *address = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
    int error = errno;
    close(fd);
    if (address == MAP_FAILED)
      badInput(path, ": cannot be mapped: ", std::strerror(error));
    data_ = static_cast<const unsigned char *>(address);
  } else {
    close(fd);
  }
}

MappedFile::~MappedFile() {
  if (data_)
    munmap(const_cast<unsigned char *>(data_), size_);
}

OutputFile::OutputFile(const std::string &path) : path_(path), target_(path) {
  // A link stays a link: what it points to is replaced.
  if (char *real = realpath(path.c_str(), nullptr)) {
    target_ = real;
    std::free(real);
  }
  struct stat info;
  bool exists = stat(target_.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode))
    badInput(path, ": is a directory, expected a file to write");
  // Devices and pipes are written to, never replaced.
  if (exists && !S_ISREG(info.st_mode)) {
    fd_ = open(target_.c_str(), O_WRONLY | O_CLOEXEC);
  } else {
    partial_ = target_ + ".partial";
    fd_ = open(partial_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  }
  if (fd_ < 0)
    badInput(path, ": cannot be written: ", std::strerror(errno));
}

OutputFile::~OutputFile() {
  if (fd_ < 0)
    return;
  close(fd_);
  if (!partial_.empty())
    unlink(partial_.c_str());
}

void OutputFile::write(const void *bytes, uint64_t size, uint64_t offset) {
  end_ = std::max(end_, offset + size);
  if (partial_.empty()) {
    // No positions in a device or pipe: gathered here, written in order by commit().
    stream_.resize(std::max<uint64_t>(stream_.size(), offset + size));
    std::memcpy(stream_.data() + offset, bytes, size);
    return;
  }
  const char *at = static_cast<const char *>(bytes);
  while (size != 0) {
    ssize_t written = pwrite(fd_, at, size, off_t(offset));
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      workFailed(path_, ": write failed: ", std::strerror(errno));
    at += written;
    offset += uint64_t(written);
    size -= uint64_t(written);
  }
}

void OutputFile::append(const std::string &text) { write(text.data(), text.size(), end_); }

void OutputFile::commit() {
  for (uint64_t done = 0; done < stream_.size();) {
    ssize_t written = ::write(fd_, stream_.data() + done, stream_.size() - done);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      workFailed(path_, ": write failed: ", std::strerror(errno));
    done += uint64_t(written);
  }
  int fd = fd_;
  fd_ = -1;
  if (close(fd) != 0 || (!partial_.empty() && rename(partial_.c_str(), target_.c_str()) != 0))
    workFailed(path_, ": cannot be completed: ", std::strerror(errno));
}

} // namespace shoal::rt
