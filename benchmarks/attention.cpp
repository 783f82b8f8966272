// Times attention in f32, forward and backward, beside the matrix products that it cannot do
// without (two forward, five backward, since scores are computed again), done by the same library
// in blocks of 1024 x 1024 x 1024, at which it is fastest.
//
//   attention TOKENS HEADS HEAD_SIZE causal|full ROUNDS [positions]
//
// Prints "forward backward products" in seconds of one thread's processor time, a round a line
// after one that is not counted, and first "workspace BYTES". Causal attention is compared with
// half of the products. With positions it is told the places of the rows, which are those that they have without.
#include "../runtime/host/attention.h"
#include "products.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <numeric>
#include <vector>

using namespace shoal::rt;

namespace {

// Processor time, so that neighbours on a shared machine are not counted.
double now() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

} // namespace

int main(int argc, char **argv) {
  bool positioned = argc == 7 && std::strcmp(argv[6], "positions") == 0;
  bool causal = argc >= 6 && std::strcmp(argv[4], "causal") == 0;
  if ((argc != 6 && !positioned) || (!causal && std::strcmp(argv[4], "full") != 0)) {
    std::fprintf(stderr, "usage: attention TOKENS HEADS HEAD_SIZE causal|full ROUNDS [positions]\n");
    return 2;
  }
  setHostThreads(1);
  int64_t tokens = std::atoll(argv[1]), heads = std::atoll(argv[2]), size = std::atoll(argv[3]);
  AttentionShape shape{1, tokens, tokens, heads, 1, size, causal, 0, false, 0.125, DType::F32};
  std::vector<int64_t> places(static_cast<size_t>(tokens));
  std::iota(places.begin(), places.end(), 0);
  shape.positions = positioned;
  AttentionMasks masks{nullptr, nullptr, places.data(), places.data()};
  int64_t elements = tokens * heads * size;
  std::vector<float> q = someNumbers(elements, 37), k = someNumbers(elements, 41),
                     v = someNumbers(elements, 43);
  std::vector<float> cotangent = someNumbers(elements, 47), o(q), lse(size_t(tokens * heads));
  std::vector<float> dq(q), dk(q), dv(q);
  std::vector<float> workspace(attentionWorkspace(shape, true) + attentionWorkspace(shape, false));
  BlockProducts products;
  std::printf("workspace %zu\n", attentionWorkspace(shape, true) * sizeof(float));

  double product = double(tokens) * double(tokens) * double(heads * size) / (causal ? 2 : 1);
  for (int round = 0, rounds = std::atoi(argv[5]); round <= rounds; ++round) {
    double start = now();
    attention(shape, {q.data(), k.data(), v.data(), masks, o.data(), lse.data(), workspace.data()});
    double forward = now();
    attentionGrad(shape, {cotangent.data(), q.data(), k.data(), v.data(), o.data(), lse.data(), masks, dq.data(),
                          dk.data(), dv.data(), workspace.data()});
    double backward = now();
    products.run(7 * product);
    double end = now();
    if (round != 0)
      std::printf("%.6f %.6f %.6f\n", forward - start, backward - forward, end - backward);
  }
}
