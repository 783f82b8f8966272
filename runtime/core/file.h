// Files as the runtime needs them: a read-only mapping that notices when its file gets shorter,
// and an output that appears under its name only once it is complete.
#ifndef SHOAL_RT_CORE_FILE_H
#define SHOAL_RT_CORE_FILE_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include <csignal>
#include <sys/types.h>

namespace shoal::rt {

// Reading past the end of a file that was cut off since would raise SIGBUS; a handler ends the
// process then with one line that names the file, exit 1. A mapping keeps no descriptor, of which
// a process may have a thousand: a checkpoint has a file for each rank.
class MappedFile {
public:
  explicit MappedFile(const std::string &path); // exit 2 when it cannot be read
  ~MappedFile();
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;

  const std::string &path() const { return path_; }
  const unsigned char *data() const { return data_; }
  uint64_t size() const { return size_; }
  // Bytes cut off behind the end of the last page that is left read as zeros, without a signal:
  // whoever has read calls this. Exit 1 when the file is shorter than it was. One that lost its
  // name, or gave it to another file, stays mapped as it was.
  void checkWhole() const;
  // `call(argument)` runs in the handler, before the process ends: it may only store and load.
  static void atFault(void (*call)(void *), void *argument);

private:
  static void onBusError(int signal, siginfo_t *info, void *context);

  std::string path_;
  const unsigned char *data_ = nullptr;
  uint64_t size_ = 0;
  dev_t device_ = 0; // and number: which file it is
  ino_t number_ = 0;
  std::atomic<MappedFile *> next_ = nullptr; // list of all mappings, for the handler

  static std::atomic<MappedFile *> all_;
};

// A file by what it is, so that links and other spellings are seen; by its place where there is none yet. Empty
// for devices and pipes, which may be shared.
std::string identityOf(const std::string &path);

// Whether a path is a folder or lies in it, links followed; neither has to be there yet.
bool liesIn(const std::string &path, const std::string &folder);

// Names in a folder are on disk when this returns. Exit 1 when that fails.
void syncFolder(const std::string &path);

// Writes a file without a name and gives it the name PATH on commit(). Opening it early finds a
// wrong path before the work is done; without commit(), also when the process is killed, an older
// file of that name stays and nothing is left behind. (File systems without nameless files get
// .shoal-*.partial, which only a killed process leaves.) No file of another name is touched. A
// device or pipe is not replaced: it is written on prepare().
class OutputFile {
public:
  explicit OutputFile(const std::string &path); // exit 2 when it cannot be made
  ~OutputFile();
  OutputFile(const OutputFile &) = delete;
  OutputFile &operator=(const OutputFile &) = delete;

  const std::string &path() const { return path_; }
  void write(const void *bytes, uint64_t size, uint64_t offset); // exit 1 when it fails
  void append(const std::string &text);
  // All of commit() but the name: what can fail for want of space fails here. For files that belong together: all are
  // prepared before the first is committed, so that a full disk leaves all of the old ones.
  void prepare();
  void commit();

private:
  std::string path_;    // as the user named it
  std::string target_;  // links followed
  bool isReplaced_ = false; // neither device nor pipe
  std::string partial_;     // the name on the way to the target, once there is one
  std::string stream_;      // what a device or pipe gets on prepare()
  int fd_ = -1;
  uint64_t end_ = 0;
  bool isPrepared_ = false;
};

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_FILE_H
