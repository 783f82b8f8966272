// A folder of one launch, for what its processes share: the progress board, MPI's segments, and the session folder of
// Open MPI, which launches of one user otherwise share: one fails where another removes it at the wrong moment.
#ifndef SHOAL_RUN_LAUNCH_FOLDER_H
#define SHOAL_RUN_LAUNCH_FOLDER_H

#include <string>

class LaunchFolder {
public:
  // Removes also what launches that were killed have left.
  LaunchFolder();
  ~LaunchFolder();
  LaunchFolder(const LaunchFolder &) = delete;
  LaunchFolder &operator=(const LaunchFolder &) = delete;

  const std::string &path() const { return path_; }

private:
  std::string path_;
  int lock_ = -1; // inherited by mpirun: as long as either lives, no other launch removes the folder
};

#endif // SHOAL_RUN_LAUNCH_FOLDER_H
