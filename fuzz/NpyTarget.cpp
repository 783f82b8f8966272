// .npy files: the header, and every element read as every type it converts to.
#include "Target.h"
#include "core/npy.h"
#include "shoal-rt/traffic.h"

#include <vector>

using namespace shoal;
using rt::DType;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::InputFile input(data, size);
  fuzz::expectOneLine([&] {
    rt::NpyFile file(input.path());
    uint64_t elements = 1;
    for (uint64_t dim : file.shape())
      elements *= dim; // the file holds them, so they fit
    for (DType type : {DType::F32, DType::F64, DType::BF16, DType::I32, DType::I64, DType::I1}) {
      if (!rt::canConvert(file.type(), type))
        continue;
      std::vector<char> to(elements * rt::elementBytes(type));
      fuzz::expectOneLine([&] {
        rt::convert(file.data(), file.type(), to.data(), type, elements, file.path());
      });
    }
    file.checkWhole();
  });
  return 0;
}
