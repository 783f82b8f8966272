// Times the matrix products of one training step of a perceptron and nothing else, through
// the library calls that compiled programs make: what a step would cost if all the rest were free.
//
//   gemms-of-a-step 512,784,4096,4096,10 STEPS      batch, then layer sizes
//
// Prints the seconds of each step, one a line, after one step that is not counted.
#include "../runtime/host/gemm.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <sys/mman.h>

using namespace shoal::rt;

namespace {

using Buffer = std::unique_ptr<float, decltype(&std::free)>;

Buffer makeBuffer(int64_t elements) {
  // Huge pages, as the arena of a compiled program has them.
  constexpr size_t kPage = size_t(2) << 20;
  size_t bytes = (size_t(elements) * sizeof(float) + kPage - 1) / kPage * kPage;
  Buffer buffer(static_cast<float *>(std::aligned_alloc(kPage, bytes)), &std::free);
  madvise(buffer.get(), bytes, MADV_HUGEPAGE);
  // Small values of both signs: neither denormal nor growing from layer to layer.
  for (int64_t i = 0; i < elements; ++i)
    buffer.get()[i] = float(i * 37 % 101 - 50) / 5000.0f;
  return buffer;
}

std::vector<int64_t> parseSizes(const std::string &text) {
  std::vector<int64_t> sizes;
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find(',', begin), text.size());
    sizes.push_back(std::atoll(text.substr(begin, end - begin).c_str()));
    begin = end + 1;
  }
  return sizes;
}

class Step {
public:
  Step(int64_t batch, const std::vector<int64_t> &sizes) {
    std::vector<float *> values, cotangents; // of the activations, by layer
    for (int64_t size : sizes) {
      values.push_back(add(batch * size));
      cotangents.push_back(add(batch * size));
    }
    std::vector<float *> weights, gradients;
    for (size_t i = 0; i + 1 < sizes.size(); ++i) {
      int64_t in = sizes[i], out = sizes[i + 1];
      weights.push_back(add(in * out));
      gradients.push_back(add(in * out));
      // y = x w
      gemm({batch, out, in, 0, 0, in, out, out}, values[i], weights[i], values[i + 1]);
    }
    for (size_t i = sizes.size() - 1; i-- > 0;) {
      int64_t in = sizes[i], out = sizes[i + 1];
      // dw = x^T dy
      gemm({in, out, batch, 1, 0, in, out, out}, values[i], cotangents[i + 1], gradients[i]);
      // dx = dy w^T; the data need no gradient
      if (i > 0)
        gemm({batch, in, out, 0, 1, out, out, in}, cotangents[i + 1], weights[i], cotangents[i]);
    }
  }

  void run() {
    for (const std::unique_ptr<LibraryCall> &call : calls_)
      call->run();
  }

private:
  struct Shape {
    int64_t m, n, k, transA, transB, ldA, ldB, ldC;
  };

  float *add(int64_t elements) {
    buffers_.push_back(makeBuffer(elements));
    return buffers_.back().get();
  }

  void gemm(const Shape &s, const float *a, const float *b, float *c) {
    std::vector<int64_t> params(kGemmNumParams, 0);
    params[kGemmM] = s.m, params[kGemmN] = s.n, params[kGemmK] = s.k;
    params[kGemmBatch] = 1;
    params[kGemmTransA] = s.transA, params[kGemmTransB] = s.transB;
    params[kGemmLdA] = s.ldA, params[kGemmLdB] = s.ldB, params[kGemmLdC] = s.ldC;
    params[kGemmDTypeIn] = params[kGemmDTypeOut] = int64_t(DType::F32);
    calls_.push_back(cache_.get(params).bind(a, b, c));
  }

  GemmCache cache_;
  std::vector<Buffer> buffers_;
  std::vector<std::unique_ptr<LibraryCall>> calls_;
};

} // namespace

int main(int argc, char **argv) {
  std::vector<int64_t> sizes = argc == 3 ? parseSizes(argv[1]) : std::vector<int64_t>();
  if (sizes.size() < 3) {
    std::fprintf(stderr, "usage: gemms-of-a-step BATCH,SIZE,SIZE[,SIZE...] STEPS\n");
    return 2;
  }
  setHostThreads(1);
  Step step(sizes[0], {sizes.begin() + 1, sizes.end()});
  step.run();
  for (int i = 0, steps = std::atoi(argv[2]); i < steps; ++i) {
    auto start = std::chrono::steady_clock::now();
    step.run();
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    std::printf("%.9f\n", took.count());
  }
}
