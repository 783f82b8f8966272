// The parts of a page, in the order in which they stand.
#ifndef SHOAL_LIB_REPORT_WRITE_H
#define SHOAL_LIB_REPORT_WRITE_H

#include "shoal/Report/Page.h"

#include "shoal-rt/html.h"

#include "llvm/ADT/ArrayRef.h"

namespace shoal::report {

using rt::Html, rt::escapeHtml, rt::showBytes, rt::showCount, rt::showAmount, rt::showPoint, rt::showNumberOf,
    rt::writeBytes;

/// Of Style.cpp.
std::string getStyle();
llvm::StringLiteral getScript();

/// The colour of a mesh axis, as a class of the style sheet: the same on the whole page. A known axis has its own;
/// those of the user's own names share kNumFreeColours.
inline constexpr unsigned kNumFreeColours = 4;
std::string getAxisClass(llvm::StringRef axis);
/// The name of an axis in its colour, with what follows it.
void writeAxis(Html &html, llvm::StringRef axis, llvm::StringRef more = "");
void writeAxes(Html &html, llvm::ArrayRef<std::string> axes);

/// The rank that sends the most, whose traffic stands for the step.
const rt::RankReport *findBusiest(const rt::Report &report);
uint64_t getSentBytes(const rt::RankReport &rank);

void writeHead(Html &html, const Page &page);
void writeMesh(Html &html, const rt::Report &report);
void writeLayers(Html &html, const Page &page);
void writeTensors(Html &html, const Page &page);
void writeCollectives(Html &html, const Page &page);
void writeMemory(Html &html, const Page &page);
void writePipeline(Html &html, const Page &page);

} // namespace shoal::report

#endif // SHOAL_LIB_REPORT_WRITE_H
