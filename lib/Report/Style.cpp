// How the page of evidence looks beyond what all pages share, and the few lines of script behind the chart's readout. The page is
// complete without the script.
#include "Write.h"

#include "shoal-rt/page_style.h"

namespace shoal::report {

static constexpr llvm::StringLiteral kStyle = R"css(
.ax { color: var(--axis); }
.ax.replica { --axis: var(--replica); } .ax.data { --axis: var(--data); } .ax.tensor { --axis: var(--tensor); }
.ax.pipe { --axis: var(--pipe); } .ax.context { --axis: var(--context); } .ax.ulysses { --axis: var(--ulysses); }
.ax.free0 { --axis: var(--free0); } .ax.free1 { --axis: var(--free1); } .ax.free2 { --axis: var(--free2); } .ax.free3 { --axis: var(--free3); }
span.ax { font-weight: 600; font-size: 12.5px; padding: 1px 7px; margin-right: 4px; border-radius: 5px; background: color-mix(in srgb, var(--axis) 13%, transparent); white-space: nowrap; }

.mesh { margin: 0; }
.mesh .blocks { display: flex; flex-wrap: wrap; gap: 12px; max-width: 560px; }
.mesh svg { max-width: 100%; height: auto; }
.mesh figcaption { margin: 6px 8px 0; }
.link { stroke: var(--axis); stroke-width: 2; opacity: .75; }
.rank { fill: var(--card); stroke: var(--line); stroke-width: 1.2; }
.id { font: 600 13px system-ui, sans-serif; fill: var(--ink); text-anchor: middle; dominant-baseline: central; }
.id.small { font-size: 10px; font-weight: 500; }

.chart { display: block; width: 100%; height: auto; }
.chart text { font: 11px system-ui, sans-serif; fill: var(--soft); font-variant-numeric: tabular-nums; }
text.tick { text-anchor: end; }
.mem0 { --m: var(--m0); } .mem1 { --m: var(--m1); } .mem2 { --m: var(--m2); } .mem3 { --m: var(--m3); } .mem4 { --m: var(--m4); }
.mem { fill: var(--m); } .gaps { fill: url(#hatch); } .hatch { fill: var(--m5); } .swatch.gaps { background: repeating-linear-gradient(45deg, var(--m5) 0 2px, transparent 2px 5px); }
line.arena { stroke: var(--soft); } .chart text.arena { fill: var(--soft); }
.talk { fill: var(--axis, var(--soft)); }
line.peak { stroke: var(--ink); stroke-width: 1; stroke-dasharray: 2 3; } circle.peak { fill: var(--ink); stroke: var(--card); stroke-width: 2; }
.chart text.peak { fill: var(--ink); font-size: 12px; font-weight: 600; } .end { text-anchor: end; }
.border { stroke: var(--soft); stroke-dasharray: 3 3; }
.cursor { stroke: var(--ink); opacity: 0; }
.readout { min-height: 1.5em; margin: 2px 0 8px; }
.below { display: flex; flex-wrap: wrap; gap: 14px 48px; align-items: flex-start; }
.classes { width: auto; flex: 0 0 auto; } .held { flex: 1 1 420px; width: auto; }
.held td { overflow-wrap: anywhere; font-size: 12.5px; } .held td:first-child { white-space: nowrap; }

.collective { padding: 12px 0; border-top: 1px solid var(--line); }
.collective:first-child { border-top: 0; padding-top: 0; }
.collective > header { display: flex; flex-wrap: wrap; gap: 4px 8px; align-items: baseline; }
.collective .shape { margin-left: auto; }
.collective strong { min-width: 84px; }
.collective .bar { flex: 0 0 120px; margin: 0; align-self: center; }
dl { display: grid; grid-template-columns: 110px 1fr; gap: 2px 10px; margin: 6px 0 0; font-size: 13px; }
.collective summary { display: block; } .collective summary::before { margin-right: 8px; }
.askers { margin: 4px 0 4px; padding-left: 22px; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }

details > summary { cursor: pointer; display: flex; flex-wrap: wrap; gap: 4px 12px; align-items: baseline; list-style: none; }
details > summary::before { content: "▸"; color: var(--soft); } details[open] > summary::before { content: "▾"; }
summary .badge { margin-left: 0; } summary .note { margin-left: auto; }
.passes { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(440px, 100%), 1fr)); gap: 12px 32px; margin-top: 12px; }
.side { display: grid; gap: 14px; align-content: start; } .side:empty { display: none; }
.pass { min-width: 0; }
.ops { list-style: none; margin: 0; padding: 0; }
.op { display: flex; flex-wrap: wrap; gap: 0 8px; padding: 1px 6px; border-radius: 4px; align-items: baseline; }
.op b { font-weight: 600; } .op i, .op em { font-style: normal; color: var(--soft); overflow-wrap: anywhere; } .op .shape { margin-left: auto; }
.op.minor b { font-weight: 400; color: var(--soft); }
.op.comm { color: var(--ink); background: color-mix(in srgb, var(--axis) 11%, transparent); box-shadow: inset 3px 0 var(--axis); padding-left: 10px; margin: 2px 0; }
.op.comm span.ax { background: none; padding: 0; }

td.name code, .dims { white-space: nowrap; }
.dim { display: inline-flex; align-items: baseline; gap: 5px; margin-right: 5px; padding: 0 6px; border-radius: 5px; background: var(--fill); }
.dim.sharded { background: none; border: 1px solid var(--line); padding-right: 0; }
.cut .whole { fill: var(--fill); } .cut .piece { fill: var(--ink); opacity: .28; } .cut .pad { fill: var(--soft); opacity: .35; }
.cut .edge { fill: none; stroke: var(--soft); stroke-width: 1; } .slice { stroke: var(--axis); stroke-width: 1.3; }
@media print { nav { display: none; } .card { break-inside: avoid; } }
)css";

static constexpr llvm::StringLiteral kScript = R"js(
for (const chart of document.querySelectorAll("svg.chart")) {
  const rows = JSON.parse(chart.dataset.rows), cursor = chart.querySelector(".cursor");
  const readout = chart.parentNode.querySelector(".readout");
  const left = +chart.dataset.left, width = +chart.dataset.width; // of the plot in the chart's own units
  chart.addEventListener("pointermove", event => {
    const box = chart.getBoundingClientRect(), x = (event.clientX - box.left) / box.width * chart.viewBox.baseVal.width;
    const at = Math.floor((x - left) / width * rows.length);
    if (at < 0 || at >= rows.length) return;
    const middle = left + (at + .5) * width / rows.length;
    cursor.setAttribute("x1", middle); cursor.setAttribute("x2", middle); cursor.style.opacity = .6;
    readout.textContent = `row ${rows[at][0]}: ${rows[at][1]}, ${rows[at][2]}`;
  });
  chart.addEventListener("pointerleave", () => { cursor.style.opacity = 0; readout.textContent = ""; });
}
)js";

std::string getStyle() { return std::string(rt::kPageStyle) + kStyle.str(); }
llvm::StringLiteral getScript() { return kScript; }

} // namespace shoal::report
