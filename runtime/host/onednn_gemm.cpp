// Products in f32 and bf16 by oneDNN's matmul primitive. oneDNN 3 drops the operation
// descriptors that version 2 needs, so its API stays inside this file.
#include "core/error.h"
#include "host/gemm.h"

#include <oneapi/dnnl/dnnl.hpp>

namespace shoal::rt {
namespace {

using dnnl::memory;

const dnnl::engine &cpu() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

const dnnl::stream &cpuStream() {
  static const dnnl::stream stream(cpu());
  return stream;
}

memory::data_type dataType(int64_t type) {
  return DType(type) == DType::BF16 ? memory::data_type::bf16 : memory::data_type::f32;
}

// A (batched) row-major matrix, transposed by its strides. A batch stride of 0 is a
// matrix that all batches share.
memory::desc matrix(int64_t batch, int64_t rows, int64_t columns, int64_t ld, int64_t stride,
                    bool transposed, memory::data_type type) {
  int64_t rowStride = transposed ? 1 : ld, columnStride = transposed ? ld : 1;
  if (batch == 1)
    return memory::desc({rows, columns}, type, {rowStride, columnStride});
  return memory::desc({stride == 0 ? 1 : batch, rows, columns}, type,
                      {stride == 0 ? rows * columns : stride, rowStride, columnStride});
}

class OneDnnGemm : public Gemm {
public:
  explicit OneDnnGemm(std::span<const int64_t> p)
      : a_(matrix(p[kGemmBatch], p[kGemmM], p[kGemmK], p[kGemmLdA], p[kGemmStrideA],
                  p[kGemmTransA], dataType(p[kGemmDTypeIn]))),
        b_(matrix(p[kGemmBatch], p[kGemmK], p[kGemmN], p[kGemmLdB], p[kGemmStrideB],
                  p[kGemmTransB], dataType(p[kGemmDTypeIn]))),
        c_(matrix(p[kGemmBatch], p[kGemmM], p[kGemmN], p[kGemmLdC], p[kGemmStrideC], false,
                  dataType(p[kGemmDTypeOut]))) {
    dnnl::primitive_attr attributes;
    if (p[kGemmAccumulate]) {
      dnnl::post_ops accumulate;
      accumulate.append_sum(1.0f);
      attributes.set_post_ops(accumulate);
    }
    primitive_ = dnnl::matmul({dnnl::matmul::desc(a_, b_, c_), attributes, cpu()});
  }

  std::unique_ptr<LibraryCall> bind(const void *a, const void *b, void *c) override {
    struct Call : LibraryCall {
      void run() override {
        try {
          primitive.execute(cpuStream(), arguments);
        } catch (const dnnl::error &error) {
          workFailed("oneDNN: ", error.what());
        }
      }
      dnnl::primitive primitive;
      std::unordered_map<int, memory> arguments;
    };
    auto call = std::make_unique<Call>();
    call->primitive = primitive_;
    call->arguments = {{DNNL_ARG_SRC, memory(a_, cpu(), const_cast<void *>(a))},
                       {DNNL_ARG_WEIGHTS, memory(b_, cpu(), const_cast<void *>(b))},
                       {DNNL_ARG_DST, memory(c_, cpu(), c)}};
    return call;
  }

private:
  memory::desc a_, b_, c_;
  dnnl::matmul primitive_;
};

} // namespace

std::unique_ptr<Gemm> makeOneDnnGemm(std::span<const int64_t> params) {
  try {
    return std::make_unique<OneDnnGemm>(params);
  } catch (const dnnl::error &error) {
    workFailed("oneDNN has no ", params[kGemmM], " x ", params[kGemmN], " x ", params[kGemmK],
               " product for this processor: ", error.what());
  }
}

void blockGemm(bool transA, bool transB, int64_t m, int64_t n, int64_t k, float alpha,
               const float *a, int64_t ldA, const float *b, int64_t ldB, float beta, float *c,
               int64_t ldC) {
  if (dnnl_sgemm(transA ? 'T' : 'N', transB ? 'T' : 'N', m, n, k, alpha, a, ldA, b, ldB, beta, c,
                 ldC) != dnnl_success)
    workFailed("oneDNN could not multiply ", m, " x ", n, " x ", k);
}

} // namespace shoal::rt
