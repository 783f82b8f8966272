// What text and JSON are read to, before the shape is known.
#ifndef SHOAL_LIB_SCHEDULE_TEXT_H
#define SHOAL_LIB_SCHEDULE_TEXT_H

#include "shoal/Schedule/Text.h"

namespace shoal::pipe {

/// An action as it is written: by chunk or by stage, with or without its peer.
struct WrittenAction {
  Action action;
  int64_t chunk = -1;
};

/// The actions of one rank, and where they stand.
struct WrittenRank {
  std::vector<WrittenAction> actions;
  int64_t line = 0;
};

struct WrittenSchedule {
  Placement placement = Placement::Loop;
  std::optional<int64_t> microbatches, chunks;
  std::vector<int64_t> peak;
  std::vector<WrittenRank> ranks;
  int64_t headLine = 1; // of what is said of the whole schedule
};

/// What is wrong with a line; 0 with none.
struct TextError {
  int64_t line = 0;
  std::string message;
};

/// Adds the actions of a line.
bool readActions(llvm::StringRef text, std::vector<WrittenAction> &actions, std::string &error);

/// Adds one action that is written in parts: "SF" and numbers that are -1 where there are none.
bool readAction(llvm::StringRef letters, int64_t microbatch, int64_t chunk, int64_t stage, int64_t peer,
                std::vector<WrittenAction> &actions, std::string &error);

/// Sets a key of the head: placement.
bool readPlacement(llvm::StringRef name, Placement &placement, std::string &error);

/// Numbers of files are at least 0 and at most kMostWork.
std::string describeRange(llvm::StringRef what, llvm::StringRef got);

bool readText(llvm::StringRef text, WrittenSchedule &written, TextError &error);
bool readJson(llvm::StringRef text, WrittenSchedule &written, TextError &error);

/// At most 24 printable characters of what a user wrote.
std::string quote(llvm::StringRef text);

} // namespace shoal::pipe

#endif // SHOAL_LIB_SCHEDULE_TEXT_H
