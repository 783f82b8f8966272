// Names, renames and removals of checkpoints.
#include "core/checkpoint_folder.h"
#include "core/checkpoint_index.h"
#include "core/error.h"
#include "core/file.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace shoal::rt {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStepPrefix = "step-";
constexpr std::string_view kPartial = ".tmp"; // behind a step's name, with a dot in front of it

bool isFile(const std::string &path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

// The step of a name that stepName() makes.
std::optional<uint64_t> parseStep(std::string_view name) {
  uint64_t step = 0;
  if (!name.starts_with(kStepPrefix))
    return std::nullopt;
  std::string_view digits = name.substr(kStepPrefix.size());
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  bool isStep = error == std::errc() && end == digits.data() + digits.size() && stepName(step) == name;
  return isStep ? std::optional(step) : std::nullopt;
}

// What a run that was killed leaves in a folder of checkpoints.
bool isLeftover(std::string_view name) {
  size_t at = name.find(kPartial);
  return name.starts_with('.') && at != std::string_view::npos && parseStep(name.substr(1, at - 1));
}

std::vector<std::string> namesIn(const std::string &folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    names.push_back(at->path().filename().string());
  return names;
}

void removeAll(const std::string &path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error)
    workFailed(path, ": cannot be removed: ", error.message());
}

} // namespace

std::string stepName(uint64_t step) {
  char text[32];
  std::snprintf(text, sizeof text, "step-%06llu", static_cast<unsigned long long>(step));
  return text;
}

std::optional<uint64_t> stepOfFolder(const std::string &path) {
  fs::path folder = path;
  if (!folder.has_filename()) // "step-000120/"
    folder = folder.parent_path();
  return parseStep(folder.filename().string());
}

// Folders with a step for a name, whatever is in them.
static std::map<uint64_t, std::string> stepFolders(const std::string &folder) {
  std::map<uint64_t, std::string> found;
  for (const std::string &name : namesIn(folder))
    if (std::optional<uint64_t> step = parseStep(name))
      found[*step] = cat(folder, "/", name);
  return found;
}

std::map<uint64_t, std::string> completeCheckpoints(const std::string &folder) {
  std::map<uint64_t, std::string> found = stepFolders(folder);
  std::erase_if(found, [](const auto &entry) { return !isFile(cat(entry.second, "/", kIndexName)); });
  return found;
}

std::string findCheckpoint(const std::string &path) {
  if (isFile(cat(path, "/", kIndexName)))
    return path;
  struct stat info;
  if (stat(path.c_str(), &info) != 0)
    badInput(path, ": cannot be opened: ", std::strerror(errno));
  if (!S_ISDIR(info.st_mode))
    badInput(path, ": is no folder; a checkpoint is one, with an ", kIndexName);
  std::map<uint64_t, std::string> found = completeCheckpoints(path);
  if (found.empty())
    badInput(path, ": holds no complete checkpoint, which would be a folder such as ", stepName(100), " with an ",
             kIndexName);
  auto [newest, checkpoint] = *found.rbegin();
  std::map<uint64_t, std::string> all = stepFolders(path);
  for (auto at = all.upper_bound(newest); at != all.end(); ++at)
    std::fprintf(stderr, "note: %s has no %s, which makes a checkpoint complete: skipped, %s is taken\n",
                 oneLine(at->second).c_str(), kIndexName, stepName(newest).c_str());
  return checkpoint;
}

std::vector<std::string> parentsOfNew(const std::string &path) {
  std::vector<std::string> parents;
  std::error_code error;
  fs::path at = path;
  if (!at.has_filename()) // "runs/" is made as "runs"
    at = at.parent_path();
  while (!at.empty() && fs::status(at, error).type() == fs::file_type::not_found) {
    at = at.parent_path();
    parents.push_back(at.empty() ? "." : at.string());
  }
  std::ranges::reverse(parents);
  return parents;
}

CheckpointFolder::Lock::~Lock() {
  if (fd >= 0)
    close(fd);
}

CheckpointFolder::CheckpointFolder(const std::string &path, uint64_t step) : path_(path) {
  std::error_code error;
  std::vector<std::string> parents = parentsOfNew(path);
  fs::create_directories(path, error);
  if (error)
    badInput(path, ": cannot be made: ", error.message());
  for (const std::string &parent : parents)
    syncFolder(parent);
  lock_.fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_.fd < 0 || access(path.c_str(), W_OK | X_OK) != 0)
    badInput(path, ": cannot be written: ", std::strerror(errno));
  // File systems that cannot lock folders keep nobody out.
  if (flock(lock_.fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    badInput(path, ": another run saves its checkpoints there");
  std::map<uint64_t, std::string> found = completeCheckpoints(path);
  if (!found.empty() && found.rbegin()->first > step)
    badInput(path, ": holds a checkpoint of step ", found.rbegin()->first, ", and this run begins at step ", step,
             "; resume from it, or save in another folder");
}

CheckpointFolder::~CheckpointFolder() {
  std::error_code ignored; // told by whoever failed; the next save tries again
  if (!pending_.empty())
    fs::remove_all(pending_, ignored);
}

bool CheckpointFolder::has(uint64_t step) const { return completeCheckpoints(path_).count(step) != 0; }

std::string CheckpointFolder::begin(uint64_t step) {
  for (const std::string &name : namesIn(path_))
    if (isLeftover(name))
      removeAll(cat(path_, "/", name));
  std::string partial = cat(path_, "/.", stepName(step), kPartial);
  if (mkdir(partial.c_str(), 0777) != 0)
    workFailed(partial, ": cannot be made: ", std::strerror(errno));
  return pending_ = partial;
}

// Somebody lost a part of it, or has not copied all of it yet.
void CheckpointFolder::moveAside(uint64_t step, const std::string &path) {
  std::string aside = cat(path_, "/.", stepName(step), kPartial, "-incomplete");
  if (rename(path.c_str(), aside.c_str()) != 0)
    workFailed(path, ": has no ", kIndexName, ", and cannot be moved out of the way: ", std::strerror(errno));
  std::fprintf(stderr,
               "note: %s has no %s, which makes a checkpoint complete: moved to %s, which the next save removes\n",
               oneLine(path).c_str(), kIndexName, oneLine(aside).c_str());
}

std::string CheckpointFolder::complete(uint64_t step) {
  std::string path = cat(path_, "/", stepName(step));
  syncFolder(pending_);
  if (struct stat info; lstat(path.c_str(), &info) == 0 && !has(step))
    moveAside(step, path);
  if (rename(pending_.c_str(), path.c_str()) != 0)
    workFailed(path, ": cannot get its name: ", std::strerror(errno));
  pending_.clear();
  syncFolder(path_);
  return path;
}

void CheckpointFolder::dropOlder(uint64_t keep) {
  std::map<uint64_t, std::string> found = completeCheckpoints(path_);
  for (auto at = found.begin(); at != found.end() && found.size() > keep; at = found.erase(at)) {
    // Not complete any more before the first of its files is gone.
    std::string gone = cat(path_, "/.", stepName(at->first), kPartial, "-old");
    if (rename(at->second.c_str(), gone.c_str()) != 0)
      workFailed(at->second, ": cannot be removed: ", std::strerror(errno));
    removeAll(gone);
  }
}

} // namespace shoal::rt
