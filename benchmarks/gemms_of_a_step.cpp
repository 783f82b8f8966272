// Times the matrix products of one step of a compiled program and nothing else: what the step
// would cost if all the rest were free. The program's own rows are run, in its order and in its
// memory; products inside attention are made in blocks, at which the library is fastest.
//
//   gemms-of-a-step PROGRAM STEPS
//
// PROGRAM is one for one rank. Prints the seconds of each step, one a line, after one step that is
// not counted.
#include "../runtime/host/library.h"
#include "core/arena.h"
#include "core/error.h"
#include "core/payload.h"
#include "products.h"
#include "shoal-rt/attention.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

using namespace shoal::rt;

namespace {

// Multiplications in the products of an attention row: two forward, five backward, where scores are
// computed again. A causal mask leaves half.
double multiplicationsOf(const AttentionShape &s, bool backward) {
  if (s.window != 0 || s.segments)
    badInput("products are counted for attention without windows and segments");
  double product = double(s.batch * s.kvHeads * s.groups) * double(s.queries) * double(s.keys) *
                   double(s.headSize) / (s.causal ? 2 : 1);
  return (backward ? 5 : 2) * product;
}

class Products {
public:
  explicit Products(const Program &program) : arena_(program.header().arenaBytes) {
    if (program.numPositions() != 1)
      badInput("the program must be one for one rank, got: ", program.numPositions());
    for (const Instr &instr : program.instrs()) {
      if (instr.op != Opcode::Library)
        continue;
      std::span<const int64_t> params = program.params(instr);
      switch (LibraryFunction(instr.a)) {
      case LibraryFunction::Gemm:
        add(program, instr, params);
        break;
      case LibraryFunction::Attention:
      case LibraryFunction::AttentionGrad:
        attention_ += multiplicationsOf(attentionShape(params.data()),
                                        LibraryFunction(instr.a) == LibraryFunction::AttentionGrad);
        break;
      case LibraryFunction::ScatterAdd:
        break;
      }
    }
  }

  double seconds() {
    // Small values of both signs, anew for each step: neither denormal nor growing from product to
    // product.
    float *values = reinterpret_cast<float *>(arena_.base());
    for (uint64_t i = 0; i < arena_.size() / sizeof(float); ++i)
      values[i] = float(int64_t(i) * 37 % 101 - 50) / 5000.0f;
    auto start = std::chrono::steady_clock::now();
    for (const std::unique_ptr<LibraryCall> &call : calls_)
      call->run();
    inBlocks_.run(attention_);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

private:
  void add(const Program &program, const Instr &instr, std::span<const int64_t> params) {
    if (DType(params[kGemmDTypeIn]) != DType::F32)
      badInput("products must be of f32, got: ", dtypeName(DType(params[kGemmDTypeIn])));
    std::vector<void *> buffers;
    for (uint32_t view : program.operands(instr))
      buffers.push_back(arena_.base() + program.views()[view].offset);
    calls_.push_back(libraries_.bind(LibraryFunction::Gemm, params, buffers));
  }

  Arena arena_; // on huge pages, as the program's own
  Libraries libraries_;
  std::vector<std::unique_ptr<LibraryCall>> calls_;
  double attention_ = 0;
  BlockProducts inBlocks_;
};

} // namespace

int main(int argc, char **argv) {
  int steps = argc == 3 ? std::atoi(argv[2]) : 0;
  if (steps < 1) {
    std::fprintf(stderr, "usage: gemms-of-a-step PROGRAM STEPS\n");
    return 2;
  }
  try {
    setHostThreads(1);
    std::string note;
    Products products(*loadPayload(argv[1], note).program);
    products.seconds();
    for (int i = 0; i < steps; ++i)
      std::printf("%.9f\n", products.seconds());
  } catch (const Error &error) {
    std::fprintf(stderr, "gemms-of-a-step: error: %s\n", error.what());
    return error.code;
  }
}
