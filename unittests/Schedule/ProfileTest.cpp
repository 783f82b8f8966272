// Measured costs, and what is no profile.
#include "TestSupport.h"

#include "shoal/Schedule/Profile.h"

namespace shoal::pipe {
namespace {

constexpr const char *kOwn = "mlp, 2 stages";

Costs twoStages() { return Costs::uniform({2, 4, 1}, durations(1, 3, 1)); }

std::string profileError(llvm::StringRef text) {
  Costs costs = twoStages();
  std::string error;
  EXPECT_FALSE(applyProfile(text, "run.json", kOwn, costs, error)) << text.str();
  EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  return error;
}

TEST(Profile, ReplacesDurations) {
  Costs costs = twoStages();
  std::string error;
  ASSERT_TRUE(applyProfile(R"({"traceEvents": [], "pipelineCosts": {"of": "mlp, 2 stages", "unit": "s", "update": 0.5,
      "stages": [
      {"forward": 0.001, "backward": 0.008},
      {"forward": 0.002, "backward_input": 0.004, "backward_weight": 0.001}]}})",
                           "run.json", kOwn, costs, error))
      << error;
  EXPECT_DOUBLE_EQ(costs.stages[0].forward, 1) << "milliseconds";
  EXPECT_DOUBLE_EQ(costs.stages[0].backward, 8);
  EXPECT_DOUBLE_EQ(costs.stages[0].backwardInput, 6) << "in the ratio of the estimates, 3 to 1";
  EXPECT_DOUBLE_EQ(costs.stages[0].backwardWeight, 2);
  EXPECT_DOUBLE_EQ(costs.stages[1].backward, 5) << "the sum of its parts";
  EXPECT_DOUBLE_EQ(costs.stages[1].backwardInput, 4);
  EXPECT_DOUBLE_EQ(costs.update, 500);
}

// The first stage of a split schedule has nothing to hand back, so its backward pass is W alone.
TEST(Profile, PartWithoutOpsTakesNoTime) {
  Costs costs = twoStages();
  std::string error;
  ASSERT_TRUE(applyProfile(R"({"pipelineCosts": {"unit": "s", "stages": [
      {"forward": 0.001, "backward_weight": 0.003},
      {"forward": 0.002, "backward_input": 0.004}]}})",
                           "run.json", kOwn, costs, error))
      << error;
  EXPECT_DOUBLE_EQ(costs.stages[0].backwardInput, 0);
  EXPECT_DOUBLE_EQ(costs.stages[0].backwardWeight, 3);
  EXPECT_DOUBLE_EQ(costs.stages[0].backward, 3);
  EXPECT_DOUBLE_EQ(costs.stages[1].backwardInput, 4);
  EXPECT_DOUBLE_EQ(costs.stages[1].backwardWeight, 0);
}

TEST(Profile, RefusesWhatIsNone) {
  EXPECT_EQ(profileError("[1]"), "run.json: is not a JSON object");
  EXPECT_EQ(profileError(std::string(4000, '[')), "run.json: is nested more than 8 deep");
  EXPECT_EQ(profileError("{}"),
            "run.json: must hold an object \"pipelineCosts\"; ./program --timeline FILE.json measures them");
  EXPECT_EQ(profileError(R"({"pipelineCosts": {"unit": "ms", "stages": []}})"),
            "run.json: pipelineCosts: \"unit\" must be \"s\", got: \"ms\"");
  EXPECT_EQ(profileError(R"({"pipelineCosts": {"unit": "s", "stages": [{"forward": 1, "backward": 1}]}})"),
            "run.json: pipelineCosts: must be of as many stages as the pipeline has, 2 (ranks along \"pipe\" times "
            "chunks), got: 1");
  auto second = [](const char *stage) {
    return profileError(std::string(R"({"pipelineCosts": {"unit": "s", "stages": [{"forward": 1, "backward": 1}, )") +
                        stage + "]}}");
  };
  EXPECT_EQ(second("3"), "run.json: pipelineCosts: stage 1 must be an object");
  EXPECT_EQ(second(R"({"forward": -1})"),
            "run.json: pipelineCosts: stage 1: \"forward\" must be seconds from 0 to 1e6, got: -1");
  EXPECT_EQ(second(R"({"forward": 1e300})"),
            "run.json: pipelineCosts: stage 1: \"forward\" must be seconds from 0 to 1e6, got: 1e+300");
  EXPECT_EQ(second(R"({"backward": 1})"), "run.json: pipelineCosts: stage 1 has no \"forward\"");
  EXPECT_EQ(second(R"({"forward": 1})"),
            "run.json: pipelineCosts: stage 1 has no \"backward\", nor its parts; it is of a step without gradients");
  // A part that is misspelt would be one without ops.
  EXPECT_EQ(second(R"({"forward": 1, "bakward_input": 3, "backward_weight": 1})"),
            "run.json: pipelineCosts: stage 1: unknown member \"bakward_input\", expected forward, backward, "
            "backward_input, backward_weight");
  EXPECT_EQ(profileError(R"({"pipelineCosts": {"unit": "s", "stage": [], "stages": []}})"),
            "run.json: pipelineCosts: unknown member \"stage\", expected of, unit, stages, update");
  EXPECT_EQ(profileError(R"({"pipelineCosts": {"of": "gpt2, 2 stages", "unit": "s", "stages": [{}, {}]}})"),
            "run.json: pipelineCosts: must be of these stages, \"mlp, 2 stages\", got: \"gpt2, 2 stages\"; a run of "
            "this program measures them, and costs by hand leave \"of\" out");
}

TEST(Profile, SaysOfWhat) {
  auto read = [](std::optional<llvm::StringRef> own) {
    Costs costs = twoStages();
    std::string error;
    applyProfile(R"({"pipelineCosts": {"of": "gpt2, 2 stages", "unit": "s", "stages": [
        {"forward": 1, "backward": 1}, {"forward": 1, "backward": 1}]}})",
                 "run.json", own, costs, error);
    return error;
  };
  EXPECT_EQ(read("gpt2, 2 stages"), "");
  EXPECT_EQ(read(std::nullopt), "") << "of which stages is not known";
  EXPECT_EQ(read(""), "run.json: pipelineCosts: \"of\" must be left out for a pipeline of one rank, which no run "
                      "measures, got: \"gpt2, 2 stages\"");
}

} // namespace
} // namespace shoal::pipe
