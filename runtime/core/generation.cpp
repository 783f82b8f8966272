// Prompt, window, logits and draws of --generate.
#include "core/generation.h"
#include "core/element.h"
#include "core/error.h"
#include "core/gather.h"
#include "core/npy.h"
#include "core/standard_output.h"
#include "shoal-rt/random.h"
#include "shoal-rt/traffic.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace shoal::rt {
namespace {

TokenModel requireTokenModel(const Program &program) {
  std::string why;
  std::optional<TokenModel> model = findTokenModel(program, why);
  if (!model) // the command line has looked
    workFailed("--generate: ", why);
  return *model;
}

std::vector<int64_t> tokensOfBytes(const void *bytes, uint64_t count) {
  const unsigned char *begin = static_cast<const unsigned char *>(bytes);
  return {begin, begin + count};
}

// Before memory is taken for it.
void checkLength(const std::string &what, uint64_t tokens, const TokenModel &model) {
  if (tokens == 0 || tokens > model.window)
    badInput(what, ": a prompt must have 1 to ", model.window, " tokens, got: ", tokens);
}

std::vector<int64_t> readIds(const std::string &path, const TokenModel &model) {
  NpyFile file(path);
  if (file.shape().size() != 1)
    badInput(path, ": has shape ", shapeText(file.shape()), ", but a prompt is [tokens]");
  if (!canConvert(file.type(), DType::I64))
    badInput(path, ": holds ", fileTypeName(file.type()), ", but a prompt is of integers");
  checkLength(path, file.shape()[0], model);
  std::vector<int64_t> ids(file.shape()[0]);
  convert(file.data(), file.type(), ids.data(), DType::I64, ids.size(), path);
  file.checkWhole();
  for (size_t i = 0; i < ids.size(); ++i)
    if (ids[i] < 0 || uint64_t(ids[i]) >= model.classes)
      badInput(path, ": token ", i, " must be 0 to ", model.classes - 1, ", got: ", ids[i]);
  return ids;
}

std::vector<int64_t> readPrompt(const GenerationOptions &options, const TokenModel &model) {
  const std::string &path = options.promptFile;
  if (path.empty()) {
    checkLength("--prompt", options.prompt.size(), model);
    return tokensOfBytes(options.prompt.data(), options.prompt.size());
  }
  if (path.ends_with(".npy"))
    return readIds(path, model);
  if (!model.isOfBytes())
    badInput(path, ": is text, which needs a vocabulary of ", kByteVocabulary, " bytes, got: ", model.classes,
             "; name a .npy file of ids");
  MappedFile file(path);
  checkLength(path, file.size(), model);
  std::vector<int64_t> tokens = tokensOfBytes(file.data(), file.size());
  file.checkWhole();
  return tokens;
}

} // namespace

Generation::Generation(World &world, const Session &session, const GenerationOptions &options, uint64_t seed)
    : world_(world), session_(session), program_(session.program()), options_(options),
      model_(requireTokenModel(program_)), key_(streamKey(seed, "generate")) {
  std::vector<int64_t> prompt = readPrompt(options, model_);
  checksFilling_ = prompt.size() < model_.window;
  samples_.assign(options.samples, prompt);

  // A dimension of one place per shard stands for the window: each rank brings one row of logits per sample.
  std::span<const Dim> dims = program_.dims(*model_.logits);
  lastDims_.assign(dims.begin(), dims.end());
  lastDims_[1].global = program_.extent(program_.axesOf(dims[1]));
  lastDims_[1].local = 1;
  last_.resize(dims[0].local * dims[2].local * elementBytes(program_.views()[model_.logits->view].dtype));
  if (world_.rank() != 0)
    return;
  logits_.resize(samples_.size() * model_.classes);
  if (!options.tokensFile.empty())
    tokensFile_ = std::make_unique<OutputFile>(options.tokensFile);
}

void Generation::fill(char *arena) const {
  // Rows without a sample repeat the last one, as rows past the end of data do.
  int64_t filling = checksFilling_ && step_ == 0 ? int64_t(model_.classes) - 1 : 0;
  std::vector<int64_t> window(model_.rows * model_.window, filling);
  for (uint64_t row = 0; row < model_.rows; ++row) {
    const std::vector<int64_t> &tokens = samples_[std::min(row, samples_.size() - 1)];
    std::copy(tokens.begin() + ptrdiff_t(windowStart()), tokens.end(), window.begin() + ptrdiff_t(row * model_.window));
  }
  for (const Arg &arg : program_.args())
    if (arg.kind == ArgKind::ValidRows && program_.holds(arg, session_.position()))
      storeElement(arena + program_.views()[arg.view].offset, DType::I64, 0, double(samples_.size()));
  if (!program_.holds(*model_.ids, session_.position()))
    return;
  const View &view = program_.views()[model_.ids->view];
  char *to = arena + view.offset;
  std::memset(to, 0, view.elements * elementBytes(view.dtype)); // padding
  boxOf(program_, program_.dims(*model_.ids), session_.position())
      .forEachRun([&](uint64_t global, uint64_t local, uint64_t count) {
        convert(window.data() + global, FileType::I64, to + local * elementBytes(view.dtype), view.dtype, count,
                "the window of tokens");
      });
}

void Generation::onProbe(uint32_t result) {
  if (&program_.results()[result] != model_.logits)
    return;
  // This shard's place, if the last token is in it; else any, for nobody looks at it.
  std::span<const Dim> dims = program_.dims(*model_.logits);
  const View &view = program_.views()[model_.logits->view];
  uint64_t place = lastPlace() % dims[1].local, row = dims[2].local * elementBytes(view.dtype);
  for (uint64_t i = 0; i < dims[0].local; ++i)
    std::memcpy(last_.data() + i * row, session_.address(model_.logits->view) + (i * dims[1].local + place) * row, row);
}

void Generation::gatherLogits() {
  DType type = program_.views()[model_.logits->view].dtype;
  uint64_t shard = lastPlace() / program_.dims(*model_.logits)[1].local;
  gatherBoxes(world_, program_, lastDims_, program_.holders(*model_.logits), elementBytes(type), session_.position(),
              last_.data(),
              [&](const Box &box, const char *data) {
                const BoxDim &rows = box.dims[0], &classes = box.dims[2];
                if (box.dims[1].start != shard)
                  return;
                for (uint64_t i = 0; i < rows.valid && rows.start + i < samples_.size(); ++i)
                  for (uint64_t c = 0; c < classes.valid; ++c)
                    logits_[(rows.start + i) * model_.classes + classes.start + c] =
                        loadElement(data, type, i * classes.local + c);
              });
}

// Rank 0, in the second step.
void Generation::checkFilling() {
  for (size_t i = 0; i < logits_.size(); ++i)
    if (logits_[i] != firstLogits_[i] && !std::isnan(logits_[i])) // nan: told where it would be drawn from
      badInput("--generate needs a model whose tokens see only those before them: with two fillings of the window "
               "behind the prompt its first logits of token ", i % model_.classes, " are ", firstLogits_[i], " and ",
               logits_[i]);
  firstLogits_.clear();
}

void Generation::advance() {
  gatherLogits();
  uint64_t step = step_++;
  if (checksFilling_ && step == 0) {
    firstLogits_ = logits_;
    return;
  }
  std::vector<int64_t> drawn(samples_.size());
  if (world_.rank() == 0) {
    if (checksFilling_ && step == 1)
      checkFilling();
    for (size_t sample = 0; sample < drawn.size(); ++sample) {
      std::array<uint32_t, 4> words = philox(key_, length(), sample);
      drawn[sample] = int64_t(drawToken(std::span(logits_).subspan(sample * model_.classes, model_.classes),
                                        options_.rule, unitInterval(words[0], words[1])));
    }
  }
  world_.broadcast(reinterpret_cast<char *>(drawn.data()), drawn.size() * sizeof drawn[0]);
  for (size_t sample = 0; sample < drawn.size(); ++sample)
    samples_[sample].push_back(drawn[sample]);
}

void Generation::finish() {
  if (world_.rank() != 0)
    return;
  if (tokensFile_) {
    uint64_t shape[] = {samples_.size(), length()};
    tokensFile_->append(npyHeader(FileType::I64, shape));
    for (const std::vector<int64_t> &tokens : samples_)
      tokensFile_->append({reinterpret_cast<const char *>(tokens.data()), tokens.size() * sizeof tokens[0]});
    return tokensFile_->commit();
  }
  std::string text;
  for (const std::vector<int64_t> &tokens : samples_) {
    text += text.empty() ? "" : "---\n";
    for (int64_t token : tokens)
      text += char(token);
    text += '\n';
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  finishOutput();
}

} // namespace shoal::rt
