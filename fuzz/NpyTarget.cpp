// .npy files: the header, and every element read as every type it converts to, and as text.
#include "Conversions.h"
#include "Target.h"
#include "core/byte_tokens.h"
#include "core/npy.h"

using namespace shoal;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::InputFile input(data, size);
  fuzz::expectOneLine([&] {
    rt::NpyFile file(input.path());
    uint64_t elements = 1;
    for (uint64_t dim : file.shape())
      elements *= dim; // the file holds them, so they fit
    fuzz::convertToEveryType(file.data(), file.type(), elements, file.path());
    file.checkWhole();
  });
  fuzz::expectOneLine([&] { rt::textOfTokens(input.path()); });
  return 0;
}
