// A launch holds a lock on its folder, so that one without is known to be left over.
#include "launch_folder.h"
#include "core/board.h"
#include "core/error.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace shoal::rt;

namespace {

constexpr const char *kPrefix = "shoal-launch-", *kPlaces = "XXXXXX";
constexpr const char *kMark = ".made-by-shoal-run";

int openFolder(const std::string &path, int flags) {
  return open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | flags);
}

void remove(const std::string &path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
}

/// Whether a launch has made it: others may name their folders as they like.
bool isMarked(int folder) {
  struct stat info;
  return fstatat(folder, kMark, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid();
}

void removeLeftOvers(const std::string &shared) {
  std::error_code error;
  std::vector<std::string> paths;
  for (std::filesystem::directory_iterator at(shared, error), end; !error && at != end; at.increment(error))
    if (std::string name = at->path().filename();
        name.starts_with(kPrefix) && name.size() == std::strlen(kPrefix) + std::strlen(kPlaces))
      paths.push_back(at->path());
  for (const std::string &path : paths) {
    int folder = openFolder(path, O_CLOEXEC);
    if (folder < 0)
      continue; // of another user, or gone
    struct stat info;
    if (fstat(folder, &info) == 0 && info.st_uid == geteuid() && isMarked(folder) &&
        flock(folder, LOCK_EX | LOCK_NB) == 0)
      remove(path);
    close(folder);
  }
}

} // namespace

LaunchFolder::LaunchFolder() {
  std::string shared = sharedFolder();
  removeLeftOvers(shared);
  path_ = shared + "/" + kPrefix + kPlaces;
  if (!mkdtemp(path_.data()))
    workFailed(path_, ": cannot be made: ", std::strerror(errno));
  lock_ = openFolder(path_, 0);
  if (lock_ < 0)
    workFailed(path_, ": cannot be opened: ", std::strerror(errno));
  // Without a mark no other launch takes it for a left-over, and with it there is the lock.
  flock(lock_, LOCK_EX);
  int mark = openat(lock_, kMark, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (mark < 0)
    workFailed(path_, "/", kMark, ": cannot be made: ", std::strerror(errno));
  close(mark);
}

LaunchFolder::~LaunchFolder() {
  remove(path_);
  close(lock_);
}
