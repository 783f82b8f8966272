// Which evaluation programs may run between the steps of a training program.
#include "TestSupport.h"

#include "core/evaluation.h"
#include "shoal-rt/blob_builder.h"

namespace shoal::rt {
namespace {

using test::expectBadInput;

struct Spec {
  Mode mode = Mode::Eval;
  uint64_t arena = 4096, offset = 64, elements = 16;
  uint32_t axis = 2;
  std::string name = "w";
  ArgKind kind = ArgKind::Param;
  std::vector<std::string> members = {}; // of 4 elements each
  std::vector<uint32_t> holders = {};    // of the argument; none: all
};

Program make(const Spec &spec) {
  BlobBuilder blob("model", spec.mode);
  blob.header().arenaBytes = spec.arena;
  blob.header().batchRows = 8 * spec.axis;
  uint32_t data = blob.addAxis("data", spec.axis);
  uint32_t w = blob.addView(spec.offset, spec.elements, DType::F32);
  uint32_t x = blob.addView(1024, 8, DType::F32);
  BlobBuilder::ArgSpec kept{spec.name, spec.kind, w, {{spec.elements}}, -1, InitKind::Constant};
  for (const std::string &member : spec.members)
    kept.members.push_back({.name = member, .dims = {{4}}, .init = InitKind::Constant});
  if (!spec.holders.empty())
    kept.heldAt = blob.addPositions(spec.holders);
  blob.addArg(kept);
  blob.addArg({"x", ArgKind::Input, x, {{8 * spec.axis, {data}}}, 0});
  std::vector<unsigned char> table = blob.finish();
  return Program(table.data(), table.size());
}

TEST(Evaluation, SharesWhatTrainingKeeps) {
  Program training = make({.mode = Mode::Train});
  EXPECT_NO_THROW(checkEvaluation(training, make({})));
  EXPECT_NO_THROW(checkEvaluation(training, make({.arena = 2048})));
  auto refused = [&](const Spec &spec, const std::string &part) {
    expectBadInput([&] { checkEvaluation(training, make(spec)); }, part);
  };
  refused({.mode = Mode::Infer}, "modes must be 0 and 2, got: 0 and 1");
  refused({.arena = 8192}, "its arena must fit that of training, 4096 bytes, got: 8192");
  refused({.axis = 3}, "its mesh must be that of training");
  refused({.name = "v"}, "'v' must be an argument of training");
  refused({.kind = ArgKind::Buffer}, "'w' must be an argument of training");
  refused({.offset = 128}, "'w' must lie where training has it, at 64, got: 128");
  refused({.elements = 8}, "'w' must lie where training has it");
  refused({.members = {"u"}}, "'w' must hold the tensors that training has in it");
}

// A parameter may be held in fewer places than in training, where its bytes are its own.
TEST(Evaluation, HoldsWhatTrainingHoldsThere) {
  using Holders = std::vector<uint32_t>;
  for (auto [trained, evaluated, fits] :
       {std::tuple(Holders{}, Holders{}, true), {{}, {0, 1}, true}, {{0, 1}, {0, 1}, true}, {{1, 1}, {0, 1}, true},
        {{0, 1}, {}, false}, {{0, 1}, {1, 1}, false}, {{0, 1}, {1, 0}, false}}) {
    Program training = make({.mode = Mode::Train, .holders = trained}), evaluation = make({.holders = evaluated});
    if (fits)
      EXPECT_NO_THROW(checkEvaluation(training, evaluation));
    else
      expectBadInput([&] { checkEvaluation(training, evaluation); },
                     "'w' must be held only where training holds it");
  }
}

TEST(Evaluation, HasTheBucketsOfTraining) {
  Program training = make({.mode = Mode::Train, .members = {"u", "v"}});
  EXPECT_NO_THROW(checkEvaluation(training, make({.members = {"u", "v"}})));
  for (const std::vector<std::string> &members : {std::vector<std::string>{"v", "u"}, {"u"}, {}})
    expectBadInput([&] { checkEvaluation(training, make({.members = members})); },
                   "'w' must hold the tensors that training has in it");
}

} // namespace
} // namespace shoal::rt
