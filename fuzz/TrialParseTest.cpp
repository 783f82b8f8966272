// The trial of a parse: its verdicts, and whose fault a report shows.
#include "TrialParse.h"

#include "Target.h"

using namespace shoal::fuzz;

namespace {

bool parse(const std::string &text, void *) {
  if (text == "crash")
    std::abort();
  return text == "valid";
}

// A report with `frames` above the entry of the parser.
std::string report(const std::string &frames) {
  return "==1==ERROR: AddressSanitizer: attempting double-free\n" + frames +
         "    #3 0x3 in trialParseEntry(bool (*)()) TrialParse.cpp:38:16\n"
         "    #4 0x4 in shoal::fuzz::tryParse() TrialParse.cpp:120:18\n\n0x5 is located in a region\n";
}

} // namespace

int main() {
  require(tryParse(parse, "valid", nullptr).verdict == Verdict::Valid, "a valid text is valid");
  require(tryParse(parse, "wrong", nullptr).verdict == Verdict::Refused, "a wrong text is refused");
  require(tryParse(parse, "crash", nullptr).verdict == Verdict::OurFault, "a crash without MLIR is ours");

  const std::string library = "    #1 0x1 in mlir::Block::~Block() (/usr/lib/libMLIR.so.19.1+0x12)\n";
  require(isUpstream(report("    #0 0x0 in free (/build/fuzz-mlir+0x7)\n" + library)), "MLIR alone is upstream");
  require(!isUpstream(report(library + "    #2 0x2 in shoal::dist::MeshOp::parse() Dist.cpp:9:1\n")),
          "MLIR called by us is ours");
  require(!isUpstream(report("    #0 0x0 in shoal::dist::verify() Dist.cpp:9:1\n")), "our crash is ours");
  require(!isUpstream("    #0 0x0 in a (/usr/lib/libMLIR.so.19.1+0x12)\n\n"), "a cut stack is ours");
  require(!isUpstream(""), "no stack is ours");
}
