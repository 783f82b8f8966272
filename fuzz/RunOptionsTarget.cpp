// The command line of a compiled program, one argument a line, held against a training program, one for inference
// and one that generates tokens.
#include "Target.h"
#include "core/options.h"
#include "shoal-rt/blob_builder.h"

#include <vector>

using namespace shoal;
using namespace shoal::rt;

namespace {

Program makeProgram(Mode mode) {
  BlobBuilder blob("fuzz", mode);
  blob.header().arenaBytes = 4096;
  blob.header().batchRows = 4;
  uint32_t axis = blob.addAxis("data", 2);
  uint32_t x = blob.addView(0, 6, DType::F32), w = blob.addView(64, 3, DType::F32);
  uint32_t out = blob.addView(128, 2, DType::F32), loss = blob.addView(192, 1, DType::F32);
  blob.addArg({.name = "x", .view = x, .dims = {{4, {axis}}, {3}}, .batchDim = 0});
  blob.addArg({.name = "w", .kind = ArgKind::Param, .view = w, .dims = {{3}},
               .init = InitKind::Uniform, .a = -1, .b = 1});
  bool trains = mode == Mode::Train;
  uint32_t result =
      trains ? blob.addResult({.name = "loss", .view = loss})
             : blob.addResult({.name = "out", .kind = ResultKind::Output, .view = out,
                               .dims = {{4, {axis}}}, .batchDim = 0});
  blob.addInstr({.op = Opcode::Probe, .a = result});
  std::vector<unsigned char> bytes = blob.finish();
  return Program(bytes.data(), bytes.size());
}

Program makeTokenProgram() {
  BlobBuilder blob("tokens", Mode::Infer);
  blob.header().arenaBytes = 16384;
  blob.header().batchRows = 2;
  uint32_t ids = blob.addView(0, 8, DType::I64), logits = blob.addView(4096, 2048, DType::F32);
  blob.addArg({.name = "ids", .view = ids, .dims = {{2}, {4}}, .batchDim = 0});
  blob.addInstr({.op = Opcode::Probe,
                 .a = blob.addResult({.name = "logits", .kind = ResultKind::Output, .view = logits,
                                      .dims = {{2}, {4}, {256}}, .batchDim = 0})});
  std::vector<unsigned char> bytes = blob.finish();
  return Program(bytes.data(), bytes.size());
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const Program programs[] = {makeProgram(Mode::Train), makeProgram(Mode::Infer), makeTokenProgram()};
  std::vector<std::string> words = {"program"};
  std::string text(reinterpret_cast<const char *>(data), size);
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    words.emplace_back(text.substr(at, end - at).c_str()); // an argument ends at a zero
    at = end + 1;
  }
  std::vector<const char *> argv;
  for (const std::string &word : words)
    argv.push_back(word.c_str());
  for (const Program &program : programs)
    fuzz::expectOneLine([&] { parseOptions(int(argv.size()), argv.data(), program); });
  return 0;
}
