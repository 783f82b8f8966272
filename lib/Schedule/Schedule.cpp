// Where stages lie, and actions as text.
#include "shoal/Schedule/Schedule.h"

#include "llvm/ADT/STLExtras.h"

namespace shoal::pipe {

std::optional<Placement> symbolizePlacement(llvm::StringRef name) {
  if (name == "loop")
    return Placement::Loop;
  if (name == "vee")
    return Placement::Vee;
  return std::nullopt;
}

llvm::StringRef stringifyPlacement(Placement placement) { return placement == Placement::Loop ? "loop" : "vee"; }

static constexpr std::pair<Part, llvm::StringLiteral> kParts[] = {{Part::Forward, "forward"},
                                                                  {Part::Backward, "backward"},
                                                                  {Part::BackwardInput, "backward_input"},
                                                                  {Part::BackwardWeight, "backward_weight"}};

std::optional<Part> symbolizePart(llvm::StringRef name) {
  for (auto [part, word] : kParts)
    if (word == name)
      return part;
  return std::nullopt;
}

llvm::StringRef stringifyPart(Part part) {
  for (auto [known, word] : kParts)
    if (known == part)
      return word;
  return "";
}

/// A chunk whose stages run from the last rank to the first.
static bool runsBack(const Shape &shape, int64_t chunk) { return shape.placement == Placement::Vee && chunk % 2 == 1; }

int64_t Shape::getRank(int64_t stage) const {
  return runsBack(*this, getChunk(stage)) ? ranks - 1 - stage % ranks : stage % ranks;
}

int64_t Shape::getStage(int64_t rank, int64_t chunk) const {
  return chunk * ranks + (runsBack(*this, chunk) ? ranks - 1 - rank : rank);
}

std::string findFault(const Shape &shape) {
  for (auto [name, value] :
       {std::pair("ranks", shape.ranks), {"micro-batches", shape.microbatches}, {"chunks", shape.chunks}})
    if (value < 1)
      return std::string("a schedule needs at least 1 of ") + name + ", got: " + std::to_string(value);
  // Each factor by itself first, so that the product cannot overflow.
  if (shape.ranks > kMostWork || shape.microbatches > kMostWork || shape.chunks > kMostWork ||
      shape.getStages() > kMostWork || shape.getStages() * shape.microbatches > kMostWork)
    return "ranks times chunks times micro-batches must be at most " + std::to_string(kMostWork) +
           ", got: " + std::to_string(shape.ranks) + " x " + std::to_string(shape.chunks) + " x " +
           std::to_string(shape.microbatches);
  return "";
}

bool Schedule::hasMessages() const {
  return llvm::any_of(
      ranks, [](const auto &actions) { return llvm::any_of(actions, [](const Action &a) { return a.isMessage(); }); });
}

bool splitsBackward(const Schedule &schedule) {
  return llvm::any_of(schedule.ranks, [](const std::vector<Action> &actions) {
    return llvm::any_of(actions, [](const Action &action) { return action.kind == ActionKind::BackwardInput; });
  });
}

/// Of its kind, and of a message the way: "F", "SB".
static std::string getLetters(const Action &action) {
  std::string text(1, "FBIWSRNU"[unsigned(action.kind)]);
  if (action.isMessage())
    text += action.backward ? 'B' : 'F';
  return text;
}

std::string format(const Action &action, const Shape &shape, int64_t rank) {
  std::string text = getLetters(action);
  if (action.kind == ActionKind::Norm || action.kind == ActionKind::Update)
    return text;
  text += std::to_string(action.microbatch);
  if (!shape.hasStage(action.stage) || shape.getRank(action.stage) != rank)
    text += "@" + std::to_string(action.stage);
  else if (int64_t chunk = shape.getChunk(action.stage))
    text += "." + std::to_string(chunk);
  if (action.isMessage())
    text += (action.kind == ActionKind::Send ? ">" : "<") + std::to_string(action.peer);
  return text;
}

std::string getScope(const Action &action) {
  std::string text = getLetters(action);
  if (action.microbatch >= 0)
    text += std::to_string(action.microbatch) + "@" + std::to_string(action.stage);
  return text;
}

} // namespace shoal::pipe
