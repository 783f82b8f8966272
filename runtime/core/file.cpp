// Read-only mappings and outputs that appear complete or not at all.
#include "core/file.h"
#include "core/error.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <mutex>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace shoal::rt {
namespace {

std::mutex mappings; // held to change the list of all mappings
struct sigaction previousAction;
void *faultArgument = nullptr;
std::atomic<void (*)(void *)> faultCall = nullptr; // written after its argument

const char *kindOf(mode_t mode) {
  return S_ISDIR(mode)    ? "a directory"
         : S_ISCHR(mode)  ? "a device"
         : S_ISBLK(mode)  ? "a device"
         : S_ISFIFO(mode) ? "a pipe"
         : S_ISSOCK(mode) ? "a socket"
                          : "something else";
}

// Writes without allocating, as a signal handler must.
void tell(const char *text) {
  [[maybe_unused]] ssize_t written = ::write(STDERR_FILENO, text, std::strlen(text));
}

// Empty for the current one.
std::string folderOf(const std::string &path) { return path.substr(0, path.find_last_of('/') + 1); }

// Makes a file of a name that nobody has in `folder` (empty or ending in a slash). `make` returns
// whether it made the one it was given, with errno EEXIST when it has to be another.
template <typename Make> std::string makeUnique(const std::string &folder, Make make) {
  static std::atomic<unsigned> made = 0;
  constexpr int attempts = 1000; // others that die may have left some
  for (int attempt = 0; attempt < attempts; ++attempt) {
    std::string name = cat(folder, ".shoal-", getpid(), "-", made++, ".partial");
    if (make(name.c_str()))
      return name;
    if (errno != EEXIST)
      break;
  }
  return "";
}

// From the root, links followed as far as there is something.
std::filesystem::path placeOf(const std::string &path) {
  std::error_code error;
  return std::filesystem::weakly_canonical(std::filesystem::absolute(path, error), error);
}

} // namespace

std::atomic<MappedFile *> MappedFile::all_ = nullptr;

void MappedFile::atFault(void (*call)(void *), void *argument) {
  faultArgument = argument;
  faultCall = call;
}

void MappedFile::onBusError(int signal, siginfo_t *info, void *context) {
  const unsigned char *address = static_cast<const unsigned char *>(info->si_addr);
  for (MappedFile *file = all_; file; file = file->next_)
    if (address >= file->data_ && address < file->data_ + file->size_) {
      if (void (*call)(void *) = faultCall)
        call(faultArgument);
      tell("error: ");
      tell(file->path_.c_str());
      tell(": cannot be read: the file became shorter while it was in use, or its disk failed\n");
      _exit(kExitWorkFailed);
    }
  // Not ours: what was there before decides, in the end the default action.
  if ((previousAction.sa_flags & SA_SIGINFO) && previousAction.sa_sigaction)
    return previousAction.sa_sigaction(signal, info, context);
  if (previousAction.sa_handler != SIG_DFL && previousAction.sa_handler != SIG_IGN)
    return previousAction.sa_handler(signal);
  ::signal(signal, SIG_DFL); // the access that failed is tried again
}

MappedFile::MappedFile(const std::string &path) : path_(path) {
  // Non-blocking: opening a pipe to read would wait for its writer.
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    badInput(path, ": cannot be opened: ", std::strerror(errno));
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(fd);
    badInput(path, ": must be a regular file, got: ", kindOf(info.st_mode));
  }
  size_ = uint64_t(info.st_size);
  device_ = info.st_dev;
  number_ = info.st_ino;
  void *address = size_ == 0 ? nullptr : mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
  int error = errno;
  close(fd);
  if (address == MAP_FAILED)
    badInput(path, ": cannot be mapped: ", std::strerror(error));
  data_ = static_cast<const unsigned char *>(address);
  static std::once_flag installed;
  std::call_once(installed, [] {
    struct sigaction action = {};
    action.sa_sigaction = onBusError;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGBUS, &action, &previousAction);
  });
  std::lock_guard lock(mappings);
  next_ = all_.load();
  all_ = this;
}

MappedFile::~MappedFile() {
  {
    std::lock_guard lock(mappings);
    std::atomic<MappedFile *> *link = &all_;
    while (*link != this)
      link = &link->load()->next_;
    *link = next_.load();
  }
  if (data_)
    munmap(const_cast<unsigned char *>(data_), size_);
}

void MappedFile::checkWhole() const {
  struct stat info;
  bool isThere = stat(path_.c_str(), &info) == 0;
  if (!isThere && errno != ENOENT)
    workFailed(path_, ": cannot be read: ", std::strerror(errno));
  bool isSame = isThere && info.st_dev == device_ && info.st_ino == number_;
  if (isSame && uint64_t(info.st_size) < size_)
    workFailed(path_, ": became shorter while it was in use, expected ", size_,
               " bytes, got: ", info.st_size);
}

std::string identityOf(const std::string &path) {
  struct stat info;
  if (stat(path.c_str(), &info) == 0)
    return S_ISREG(info.st_mode) ? cat(info.st_dev, ":", info.st_ino) : "";
  return placeOf(path).string();
}

bool liesIn(const std::string &path, const std::string &folder) {
  std::filesystem::path inner = placeOf(path), outer = placeOf(folder);
  if (!outer.has_filename()) // "runs/" is "runs"
    outer = outer.parent_path();
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

void syncFolder(const std::string &path) {
  int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  // Some network file systems cannot sync a folder, and write its names at once.
  bool done = fd >= 0 && (fsync(fd) == 0 || errno == EINVAL);
  int error = errno;
  if (fd >= 0)
    close(fd);
  if (!done)
    workFailed(path, ": cannot be written to disk: ", std::strerror(error));
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
    isReplaced_ = true;
    std::string folder = folderOf(target_);
    fd_ = open(folder.empty() ? "." : folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
    if (fd_ < 0)
      partial_ = makeUnique(folder, [&](const char *name) {
        fd_ = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        return fd_ >= 0;
      });
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
  if (!isReplaced_) {
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

static void require(bool done, const std::string &path) {
  if (!done)
    workFailed(path, ": cannot be completed: ", std::strerror(errno));
}

void OutputFile::prepare() {
  if (std::exchange(isPrepared_, true))
    return;
  for (uint64_t done = 0; done < stream_.size();) {
    ssize_t written = ::write(fd_, stream_.data() + done, stream_.size() - done);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      workFailed(path_, ": write failed: ", std::strerror(errno));
    done += uint64_t(written);
  }
  if (!isReplaced_)
    return;
  require(fsync(fd_) == 0, path_); // the old file goes only when the new one is on disk
  if (partial_.empty())
    partial_ = makeUnique(folderOf(target_), [&](const char *name) {
      return linkat(AT_FDCWD, cat("/proc/self/fd/", fd_).c_str(), AT_FDCWD, name,
                    AT_SYMLINK_FOLLOW) == 0;
    });
  require(!partial_.empty(), path_);
}

void OutputFile::commit() {
  prepare();
  if (isReplaced_)
    require(rename(partial_.c_str(), target_.c_str()) == 0, path_);
  int fd = std::exchange(fd_, -1);
  require(close(fd) == 0, path_);
}

} // namespace shoal::rt
