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

constexpr const char *kPrefix = "shoal-launch-";

int openFolder(const std::string &path, int flags) {
  return open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | flags);
}

void remove(const std::string &path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
}

bool isAt(int folder, const std::string &path) {
  struct stat opened, named;
  return fstat(folder, &opened) == 0 && lstat(path.c_str(), &named) == 0 && opened.st_dev == named.st_dev &&
         opened.st_ino == named.st_ino;
}

void removeLeftOvers(const std::string &shared) {
  std::error_code error;
  std::vector<std::string> paths;
  for (std::filesystem::directory_iterator at(shared, error), end; !error && at != end; at.increment(error))
    if (std::string(at->path().filename()).starts_with(kPrefix))
      paths.push_back(at->path());
  for (const std::string &path : paths) {
    int folder = openFolder(path, O_CLOEXEC);
    if (folder < 0)
      continue; // of another user, or gone
    struct stat info;
    if (fstat(folder, &info) == 0 && info.st_uid == geteuid() && flock(folder, LOCK_EX | LOCK_NB) == 0)
      remove(path);
    close(folder);
  }
}

} // namespace

LaunchFolder::LaunchFolder() {
  std::string shared = sharedFolder();
  removeLeftOvers(shared);
  while (true) {
    path_ = shared + "/" + kPrefix + "XXXXXX";
    if (!mkdtemp(path_.data()))
      workFailed(path_, ": cannot be made: ", std::strerror(errno));
    lock_ = openFolder(path_, 0);
    if (lock_ < 0 && errno != ENOENT)
      workFailed(path_, ": cannot be opened: ", std::strerror(errno));
    // Another launch may have come first, to which a folder without a lock was a left-over.
    if (lock_ >= 0 && (flock(lock_, LOCK_EX), isAt(lock_, path_)))
      return;
    if (lock_ >= 0)
      close(lock_);
  }
}

LaunchFolder::~LaunchFolder() {
  remove(path_);
  close(lock_);
}
