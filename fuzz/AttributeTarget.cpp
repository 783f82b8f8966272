// Attributes and types of our dialects, each by its own parser and verifier. What is accepted must
// print, and its text must be read back as the same.
#include "shoal/Pipelines/Pipelines.h"
#include "shoal/Support/ModelText.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>

using namespace mlir;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

namespace {

template <typename T> void roundTrip(T value, T (*parse)(StringRef text, MLIRContext *context)) {
  std::string text;
  llvm::raw_string_ostream(text) << value;
  if (parse(text, value.getContext()) == value)
    return;
  std::fprintf(stderr, "fuzz: what was printed must be read back as the same: %s\n", text.c_str());
  std::abort();
}

Attribute readAttribute(StringRef text, MLIRContext *context) { return parseAttribute(text, context); }
Type readType(StringRef text, MLIRContext *context) { return parseType(text, context); }

class Target {
public:
  Target() { shoal::registerAllDialects(registry); }

  void run(StringRef text) {
    // Types and attributes live as long as their context.
    if (!context || ++inputs % 2000 == 0) {
      context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
      context->loadAllAvailableDialects();
      context->getDiagEngine().registerHandler([](Diagnostic &) {});
    }
    if (shoal::checkModelText(text))
      return;
    if (text.starts_with("!")) {
      if (Type type = readType(text, context.get()))
        roundTrip(type, readType);
    } else if (Attribute attribute = readAttribute(text, context.get())) {
      roundTrip(attribute, readAttribute);
    }
  }

private:
  DialectRegistry registry;
  std::unique_ptr<MLIRContext> context;
  unsigned inputs = 0;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static Target target;
  std::string text(reinterpret_cast<const char *>(data), size); // the parser wants a zero behind it
  target.run(text);
  return 0;
}
