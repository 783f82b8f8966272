// Reads measured costs, which come from outside.
#include "shoal/Schedule/Profile.h"

#include "shoal-rt/json_input.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace shoal::pipe {

namespace {

using rt::InputJson;

constexpr double kMostSeconds = 1e6, kMillisecondsPerSecond = 1e3;
constexpr const char *kAdvice = "; ./program --timeline FILE.json measures them";

class ProfileReader {
public:
  ProfileReader(const InputJson &root, std::optional<llvm::StringRef> own, Costs &costs)
      : root(root), own(own), costs(costs) {}

  std::string run() {
    auto found = root.find("pipelineCosts");
    if (found == root.end() || !found->is_object())
      return std::string("must hold an object \"pipelineCosts\"") + kAdvice;
    checkMembers(*found, {"of", "unit", "stages", "update"}, "pipelineCosts");
    if (!error.empty())
      return error;
    if (auto unit = found->find("unit"); unit == found->end() || *unit != "s")
      return "pipelineCosts: \"unit\" must be \"s\", got: " + (unit == found->end() ? "none" : rt::toMessage(*unit));
    auto stages = found->find("stages");
    if (stages == found->end() || !stages->is_array())
      return "pipelineCosts: \"stages\" must be an array of one object per stage";
    if (stages->size() != costs.stages.size())
      return "pipelineCosts: must be of as many stages as the pipeline has, " + std::to_string(costs.stages.size()) +
             " (ranks along \"pipe\" times chunks), got: " + std::to_string(stages->size());
    if (auto of = found->find("of"); of != found->end() && own)
      checkStages(*of);
    if (!error.empty())
      return error;
    for (size_t stage = 0; stage < stages->size() && error.empty(); ++stage)
      readStage((*stages)[stage], "pipelineCosts: stage " + std::to_string(stage), costs.stages[stage]);
    if (std::optional<double> update = read(*found, "update", "pipelineCosts"))
      costs.update = *update;
    return error;
  }

private:
  void checkStages(const InputJson &of) {
    std::string got = ", got: " + shorten(rt::toMessage(of));
    if (own->empty())
      error = "pipelineCosts: \"of\" must be left out for a pipeline of one rank, which no run measures" + got;
    else if (of != own->str())
      error = "pipelineCosts: must be of these stages, \"" + own->str() + "\"" + got +
              "; a run of this program measures them, and costs by hand leave \"of\" out";
  }

  static std::string shorten(std::string text) {
    constexpr size_t kMost = 300;
    return text.size() > kMost ? text.substr(0, kMost) + "..." : text;
  }

  void readStage(const InputJson &object, const std::string &where, StageCosts &stage) {
    if (!object.is_object()) {
      error = where + " must be an object";
      return;
    }
    checkMembers(object, {"forward", "backward", "backward_input", "backward_weight"}, where);
    std::optional<double> forward = read(object, "forward", where), backward = read(object, "backward", where),
                          input = read(object, "backward_input", where),
                          weight = read(object, "backward_weight", where);
    if (!error.empty())
      return;
    if (!forward) {
      error = where + " has no \"forward\"";
      return;
    }
    stage.forward = *forward;
    // A part without ops is not in the file, as the first stage's for its input: no stage waits for that.
    if (input || weight) {
      input = input.value_or(0);
      weight = weight.value_or(0);
    }
    if (!backward && !input) {
      if (stage.backward != 0)
        error = where + " has no \"backward\", nor its parts; it is of a step without gradients";
      return;
    }
    double estimated = stage.backwardInput + stage.backwardWeight;
    double share = estimated > 0 ? stage.backwardInput / estimated : 0.5;
    stage.backward = backward ? *backward : *input + *weight;
    stage.backwardInput = input ? *input : *backward * share;
    stage.backwardWeight = weight ? *weight : *backward * (1 - share);
  }

  void checkMembers(const InputJson &object, llvm::ArrayRef<llvm::StringRef> known, const std::string &where) {
    for (auto &[name, value] : object.items())
      if (error.empty() && !llvm::is_contained(known, llvm::StringRef(name)))
        error = where + ": unknown member " + rt::toMessage(InputJson(name)) + ", expected " + llvm::join(known, ", ");
  }

  /// In milliseconds; none where the object has no such member.
  std::optional<double> read(const InputJson &object, const char *name, const std::string &where) {
    auto found = object.find(name);
    if (found == object.end() || !error.empty())
      return std::nullopt;
    double seconds = found->is_number() ? found->get<double>() : -1;
    if (!(seconds >= 0 && seconds <= kMostSeconds)) {
      error = where + ": \"" + name + "\" must be seconds from 0 to 1e6, got: " + rt::toMessage(*found);
      return std::nullopt;
    }
    return seconds * kMillisecondsPerSecond;
  }

  const InputJson &root;
  std::optional<llvm::StringRef> own;
  Costs &costs;
  std::string error;
};

} // namespace

bool applyProfile(llvm::StringRef text, llvm::StringRef name, std::optional<llvm::StringRef> own, Costs &costs,
                  std::string &error) {
  rt::ParsedObject parsed = rt::parseJsonObject(text);
  std::string problem = parsed.problem.empty() ? ProfileReader(parsed.value, own, costs).run() : parsed.problem;
  if (!problem.empty())
    error = name.str() + ": " + problem;
  return problem.empty();
}

} // namespace shoal::pipe
