// What a run has measured of its stages, as costs: `./program --timeline FILE.json` writes it beside its trace.
//
//     {"pipelineCosts": {"of": "gpt2, ...", "unit": "s", "stages": [{"forward": 0.0012, "backward": 0.0025}, ...]}}
//
// "of" says what was measured (shoal/Dialect/Pipe/Transforms/StageCosts.h); costs written by hand leave it out.
// One object per stage, in order: mean seconds of a micro-batch's "forward", and of "backward" or of its parts
// "backward_input" and "backward_weight"; "update" of a rank beside "stages". Other members are passed over.
#ifndef SHOAL_SCHEDULE_PROFILE_H
#define SHOAL_SCHEDULE_PROFILE_H

#include "shoal/Schedule/Costs.h"

namespace shoal::pipe {

/// Replaces the durations of `costs`, which are in milliseconds, by measured ones. A schedule with parts of the
/// backward pass takes them from a whole one in the ratio that `costs` has, and the other way their sum. False with one line in
/// `error`, "NAME: ...", where the text is no profile of as many stages, or says that it is of others than `own`: of
/// none, where that is empty, since no run measures them; unknown ones may be any.
bool applyProfile(llvm::StringRef text, llvm::StringRef name, std::optional<llvm::StringRef> own, Costs &costs,
                  std::string &error);

} // namespace shoal::pipe

#endif // SHOAL_SCHEDULE_PROFILE_H
