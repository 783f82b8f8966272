// safetensors files: the header, and every element of every tensor.
#include "Conversions.h"
#include "Target.h"
#include "core/safetensors.h"

using namespace shoal;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::InputFile input(data, size);
  fuzz::expectOneLine([&] {
    rt::SafetensorsFile file(input.path());
    for (const auto &[name, tensor] : file.tensors()) {
      fuzz::require(file.find(name) == &tensor, "a tensor must be found by its name");
      uint64_t elements = 1;
      for (uint64_t dim : tensor.shape)
        elements *= dim;
      fuzz::convertToEveryType(tensor.data, tensor.type, elements, file.path());
    }
    file.checkWhole();
  });
  return 0;
}
