// safetensors files: the header, and every element of every tensor.
#include "Target.h"
#include "core/safetensors.h"
#include "shoal-rt/traffic.h"

using namespace shoal;
using rt::DType;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::InputFile input(data, size);
  fuzz::expectOneLine([&] {
    rt::SafetensorsFile file(input.path());
    for (const auto &[name, tensor] : file.tensors()) {
      fuzz::require(file.find(name) == &tensor, "a tensor must be found by its name");
      uint64_t elements = 1;
      for (uint64_t dim : tensor.shape)
        elements *= dim;
      for (DType type : {DType::F32, DType::F64, DType::BF16, DType::I32, DType::I64, DType::I1}) {
        if (!rt::canConvert(tensor.type, type))
          continue;
        std::vector<char> to(elements * rt::elementBytes(type));
        fuzz::expectOneLine([&, &tensor = tensor] {
          rt::convert(tensor.data, tensor.type, to.data(), type, elements, file.path());
        });
      }
    }
    file.checkWhole();
  });
  return 0;
}
