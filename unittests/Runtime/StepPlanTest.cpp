// Which batch each step takes, from the first row and from the middle of an epoch.
#include "TestSupport.h"
#include "core/step_plan.h"
#include "shoal-rt/blob_builder.h"

#include <memory>

namespace shoal::rt {
namespace {

using test::expectBadInput;
using test::ScratchFile;

// Data of some rows in batches of 4; none: a program without batches.
class Data {
public:
  explicit Data(std::optional<uint64_t> rows) : file_(rows ? npy(*rows) : npy(1)) {
    BlobBuilder blob("steps");
    blob.header().arenaBytes = 64;
    blob.header().batchRows = rows ? 4 : 0;
    blob.addArg({.name = "x", .view = blob.addView(0, rows ? 4 : 1, DType::F64), .dims = {{rows ? 4u : 1u}},
                 .batchDim = rows ? 0 : -1});
    if (rows)
      blob.addArg({.name = "valid", .kind = ArgKind::ValidRows, .view = blob.addView(32, 1, DType::I64)});
    std::vector<unsigned char> bytes = blob.finish();
    program_ = std::make_unique<Program>(bytes.data(), bytes.size());
    data_ = std::make_unique<Dataset>(*program_, 0, std::map<std::string, std::string>{{"x", file_.path()}});
  }
  StepPlan plan(std::optional<uint64_t> steps, std::optional<uint64_t> epochs, TrainingPosition begin = {}) const {
    Options options;
    options.steps = steps;
    options.epochs = epochs;
    return planSteps(*program_, *data_, options, begin);
  }
  const Dataset &dataset() const { return *data_; }

private:
  static std::string npy(uint64_t rows) {
    return npyHeader(FileType::F64, std::vector<uint64_t>{rows}) + std::string(rows * 8, '\0');
  }
  ScratchFile file_;
  std::unique_ptr<Program> program_;
  std::unique_ptr<Dataset> data_;
};

void expectAt(const StepPlan &plan, uint64_t step, uint64_t epoch, uint64_t batch) {
  TrainingPosition at = plan.after(step);
  EXPECT_EQ(at.step, step);
  EXPECT_EQ(at.epoch, epoch) << "after step " << step;
  EXPECT_EQ(at.batch, batch) << "after step " << step;
}

TEST(StepPlan, FromTheBeginning) {
  Data data(10); // 3 batches an epoch
  StepPlan plan = data.plan(7, std::nullopt);
  EXPECT_EQ(plan.total, 7u);
  EXPECT_EQ(plan.steps(), 7u);
  EXPECT_EQ(plan.epochs, 3u);
  expectAt(plan, 0, 0, 0);
  expectAt(plan, 2, 0, 2);
  expectAt(plan, 3, 1, 0);
  expectAt(plan, 7, 2, 1);
  plan = data.plan(std::nullopt, 4);
  EXPECT_EQ(plan.total, 12u);
  EXPECT_EQ(plan.epochs, 4u);
  EXPECT_EQ(data.plan(std::nullopt, std::nullopt).total, 3u);
  expectBadInput([&] { data.plan(std::nullopt, UINT64_MAX); }, "do not fit 64 bits");
}

// Also where the epochs before had another number of batches: 11 steps in 2 epochs.
TEST(StepPlan, FromACheckpoint) {
  Data data(10);
  TrainingPosition begin{11, 2, 1};
  StepPlan plan = data.plan(15, std::nullopt, begin);
  EXPECT_EQ(plan.steps(), 4u);
  EXPECT_EQ(plan.epochs, 4u);
  expectAt(plan, 11, 2, 1);
  expectAt(plan, 12, 2, 2);
  expectAt(plan, 13, 3, 0);
  expectAt(plan, 15, 3, 2);
  EXPECT_EQ(data.plan(std::nullopt, 4, begin).total, 16u);
  EXPECT_EQ(data.plan(11, std::nullopt, begin).steps(), 0u);
  expectBadInput([&] { data.plan(10, std::nullopt, begin); },
                 "--steps 10 counts from the beginning of the training, and the checkpoint is of step 11 in epoch 3");
  expectBadInput([&] { data.plan(std::nullopt, 2, begin); }, "--epochs 2 counts from the beginning");
  EXPECT_EQ(data.plan(std::nullopt, 2, {11, 2, 0}).steps(), 0u);
  expectBadInput([&] { data.plan(std::nullopt, 1, {11, 2, 0}); }, "--epochs 1 counts from the beginning");
  expectBadInput([&] { data.plan(std::nullopt, std::nullopt, begin); },
                 "one epoch, as without --steps and --epochs, counts from the beginning");
}

TEST(StepPlan, WithoutBatches) {
  Data data(std::nullopt);
  StepPlan plan = data.plan(5, std::nullopt, {2, 0, 0});
  EXPECT_EQ(plan.steps(), 3u);
  EXPECT_EQ(plan.epochs, 0u);
  expectAt(plan, 4, 0, 0);
  EXPECT_EQ(data.plan(std::nullopt, std::nullopt).total, 1u);
  EXPECT_EQ(data.dataset().batchesPerEpoch(), 0u);
  expectBadInput([&] { data.plan(std::nullopt, std::nullopt, {2, 0, 0}); },
                 "one step, as without --steps, counts from the beginning of the training, and the checkpoint is of step 2");
}

// The farthest place that an index may hold, and counts of steps and epochs behind it.
TEST(StepPlan, StaysInRange) {
  Data data(10);
  TrainingPosition far{uint64_t(INT64_MAX), uint64_t(INT64_MAX) - 2, 2};
  StepPlan plan = data.plan(UINT64_MAX, std::nullopt, far);
  EXPECT_EQ(plan.steps(), UINT64_MAX - far.step);
  expectAt(plan, far.step + 1, far.epoch + 1, 0);
  TrainingPosition end = plan.after(UINT64_MAX);
  EXPECT_EQ(end.epoch, far.epoch + (far.step + 3) / 3);
  EXPECT_EQ(end.batch, (far.step + 3) % 3);
  expectBadInput([&] { data.plan(std::nullopt, UINT64_MAX, far); }, "do not fit 64 bits");
}

TEST(StepPlan, ResumedPosition) {
  CheckpointIndex index;
  index.position = {11, 2, 1};
  index.rows = 10;
  index.batchRows = 4;
  index.seed = 5;
  Options options;
  auto resume = [&](std::optional<uint64_t> rows) {
    return resumedPosition(index, "ck", Data(rows).dataset(), options);
  };
  TrainingPosition at = resume(10);
  EXPECT_EQ(at.step, 11u);
  EXPECT_EQ(at.epoch, 2u);
  EXPECT_EQ(at.batch, 1u);
  expectBadInput([&] { resume(9); },
                 "ck: is of the middle of an epoch of 10 rows in batches of 4, got data of 9 rows in batches of 4");
  expectBadInput([&] { resume(std::nullopt); }, "got data of 0 rows in batches of 0");
  index.position.batch = 0;
  EXPECT_EQ(resume(9).step, 11u) << "at the end of an epoch the data may change";
  EXPECT_EQ(resume(std::nullopt).step, 11u);
  options.seed = 5;
  resume(10);
  options.seed = 6;
  expectBadInput([&] { resume(10); }, "--seed 6 does not go on from ck, whose seed is 5");
  options.seed.reset();
  options.shuffle = true;
  expectBadInput([&] { resume(10); }, "--shuffle does not go on from ck, whose rows are not shuffled");
}

TEST(StepPlan, WithoutRows) {
  Data data(0);
  EXPECT_EQ(data.plan(0, std::nullopt).steps(), 0u);
  expectBadInput([&] { data.plan(1, std::nullopt); }, "--steps 1 needs data, but the input files have 0 rows");
}

} // namespace
} // namespace shoal::rt
