// Makes a complete program by hand, the smallest that uses every part of the runtime: a
// linear model trained in f64 under data parallelism, with rows that do not divide, a
// gradient reduced on a communication stream, probes and an update. Writes the C source of
// its payload: the table, and kernels in C.
//   make_linear MODE RANKS COLUMNS OUT.c        MODE: train or infer
#include "shoal-rt/blob_builder.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

using namespace shoal::rt;

namespace {

constexpr uint64_t kBatch = 5;

// offset: first row of this rank. Rows from `valid` on are masked.
constexpr const char *kKernels = R"(
#include <stdint.h>
void predict(void *const *b) { /* x, w, out */
  const double *x = b[0], *w = b[1];
  double *out = b[2];
  for (int i = 0; i < LOCAL; ++i) {
    out[i] = 0;
    for (int j = 0; j < COLUMNS; ++j)
      out[i] += x[i * COLUMNS + j] * w[j];
  }
}
void gradient(void *const *b) { /* prediction, x, y, valid, offset, loss, grad */
  const double *p = b[0], *x = b[1], *y = b[2];
  int64_t valid = *(const int64_t *)b[3], offset = *(const int64_t *)b[4];
  double *loss = b[5], *grad = b[6];
  loss[0] = 0;
  for (int j = 0; j < COLUMNS; ++j)
    grad[j] = 0;
  for (int i = 0; i < LOCAL && offset + i < valid; ++i) {
    double d = p[i] - y[i];
    loss[0] += d * d / valid;
    for (int j = 0; j < COLUMNS; ++j)
      grad[j] += 2 * d * x[i * COLUMNS + j] / valid;
  }
}
void update(void *const *b) { /* grad, w in-out, step in-out */
  const double *grad = b[0];
  double *w = b[1];
  for (int j = 0; j < COLUMNS; ++j)
    w[j] -= 0.1 * grad[j];
  *(int64_t *)b[2] += 1;
}
typedef void (*kernel)(void *const *);
const kernel shoal_kernels[] = {predict, gradient, update};
)";

} // namespace

int main(int argc, char **argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: make_linear train|infer RANKS COLUMNS OUT.c\n");
    return 2;
  }
  bool train = std::string(argv[1]) == "train";
  uint32_t ranks = uint32_t(std::atoi(argv[2]));
  uint64_t columns = uint64_t(std::atoll(argv[3]));
  uint64_t local = (kBatch + ranks - 1) / ranks;
  BlobBuilder blob("linear", train ? Mode::Train : Mode::Infer);
  uint32_t data = blob.addAxis("data", ranks);
  uint32_t group = blob.addGroup({data});

  uint64_t arena = 0;
  auto view = [&](uint64_t elements, DType type,
                  StorageClass storageClass = StorageClass::Activation) {
    uint64_t at = arena;
    arena += (elements * 8 + kAlignment - 1) / kAlignment * kAlignment;
    return blob.addView(at, elements, type, storageClass);
  };
  uint32_t w = view(columns, DType::F64), step = view(1, DType::I64), valid = view(1, DType::I64);
  uint32_t x = view(local * columns, DType::F64), y = view(local, DType::F64);
  uint32_t prediction = view(local, DType::F64), offset = view(1, DType::I64);
  uint32_t loss = view(1, DType::F64), grad = view(columns, DType::F64, StorageClass::Grad);

  BlobBuilder::DimSpec rows{kBatch, {data}}, features{columns, {}};
  blob.addArg({"w", ArgKind::Param, w, {features}, -1, InitKind::Uniform, -1.0, 1.0});
  blob.addArg({"x", ArgKind::Input, x, {rows, features}, 0});
  blob.header().batchRows = kBatch;
  blob.header().arenaBytes = arena;
  blob.header().numKernels = 3;
  if (train) {
    blob.addArg({"y", ArgKind::Input, y, {rows}, 0});
    blob.addArg({"step", ArgKind::Step, step});
    blob.addArg({"valid", ArgKind::ValidRows, valid});
    uint32_t lossResult = blob.addResult({"loss", ResultKind::Loss, loss});
    uint32_t gradResult = blob.addResult({"w", ResultKind::Grad, grad, {features}});
    blob.addInstr({.op = Opcode::AxisIndex, .a = group, .operands = {offset},
                   .params = {int64_t(local)}, .name = "offset"});
    blob.addInstr({.op = Opcode::Launch, .a = 0, .operands = {x, w, prediction}, .name = "predict"});
    blob.addInstr({.op = Opcode::Launch, .event = 0, .a = 1,
                   .operands = {prediction, x, y, valid, offset, loss, grad}, .name = "gradient"});
    blob.addInstr({.op = Opcode::Wait, .stream = 1, .params = {0}});
    blob.addInstr({.op = Opcode::AllReduce, .stream = 1, .event = 1, .a = group,
                   .b = uint32_t(Reduction::Sum), .operands = {grad, grad},
                   .name = "all_reduce {data} w", .reason = "gradient of w"});
    blob.addInstr({.op = Opcode::AllReduce, .stream = 1, .event = 2, .a = group,
                   .b = uint32_t(Reduction::Sum), .operands = {loss, loss},
                   .name = "all_reduce {data} loss", .reason = "loss"});
    blob.addInstr({.op = Opcode::Wait, .params = {1}});
    blob.addInstr({.op = Opcode::Probe, .a = gradResult});
    blob.addInstr({.op = Opcode::Launch, .a = 2, .operands = {grad, w, step}, .name = "update"});
    blob.addInstr({.op = Opcode::Wait, .params = {2}});
    blob.addInstr({.op = Opcode::Probe, .a = lossResult});
  } else {
    uint32_t output = blob.addResult({"prediction", ResultKind::Output, prediction, {rows}, 0});
    blob.addInstr({.op = Opcode::Launch, .a = 0, .operands = {x, w, prediction}, .name = "predict"});
    blob.addInstr({.op = Opcode::Probe, .a = output});
  }

  std::ofstream out(argv[4]);
  out << "#define LOCAL " << local << "\n#define COLUMNS " << columns << "\n" << kKernels;
  std::vector<unsigned char> bytes = blob.finish();
  out << "__attribute__((aligned(64))) const unsigned char shoal_program[] = {";
  for (unsigned char byte : bytes)
    out << int(byte) << ",";
  out << "};\n";
  return out ? 0 : 1;
}
