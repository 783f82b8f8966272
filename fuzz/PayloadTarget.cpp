// The end of an executable: footer, size and checksum of the payload.
#include "Target.h"
#include "core/payload.h"

using namespace shoal;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::InputFile input(data, size);
  fuzz::expectOneLine([&] {
    std::string note;
    rt::loadPayload(input.path(), note);
  });
  return 0;
}
