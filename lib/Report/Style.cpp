// How the page looks, in light and in dark, and the few lines of script behind the chart's readout. The page is
// complete without the script.
#include "Write.h"

namespace shoal::report {

static constexpr llvm::StringLiteral kStyle = R"css(
:root {
  --bg: #f7f7f5; --card: #fff; --ink: #1f2328; --soft: #6a717a; --line: #e3e4e1; --fill: #eef0ee;
  --replica: #0e8a83; --data: #2f6bd8; --tensor: #c8620a; --pipe: #2f8f46; --context: #8250c8; --ulysses: #c2408a;
  --free0: #7a6a00; --free1: #b13a3a; --free2: #4a5fa8; --free3: #4f7d20;
  --m0: #5b7fb9; --m1: #9a86c9; --m2: #dd9a3c; --m3: #5fa98a; --m4: #a9937c; --m5: #c9ccc8;
}
@media (prefers-color-scheme: dark) {
  :root {
    --bg: #15181b; --card: #1d2125; --ink: #e4e7ea; --soft: #939ba4; --line: #30363c; --fill: #272c31;
    --replica: #45c4bb; --data: #7aa9ff; --tensor: #f0a050; --pipe: #6fcf86; --context: #b898f5; --ulysses: #f08cc4;
    --free0: #d6c35a; --free1: #f08a8a; --free2: #9fb2f2; --free3: #a8d373;
    --m0: #5376b4; --m1: #8470b8; --m2: #c0832c; --m3: #438c6d; --m4: #85725f; --m5: #4d545b;
  }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 52px; }
body { margin: 0; background: var(--bg); color: var(--ink); font: 14px/1.5 system-ui, "Segoe UI", "Noto Sans", sans-serif; }
code, .ops, .shape, .dims { font-family: ui-monospace, "SF Mono", "JetBrains Mono", "DejaVu Sans Mono", monospace; font-size: 12.5px; }
.num { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.note { color: var(--soft); font-size: 12.5px; }
h1 { font-size: 30px; line-height: 1.2; margin: 0; letter-spacing: -.01em; overflow-wrap: anywhere; }
h2 { font-size: 20px; margin: 44px 0 4px; letter-spacing: -.01em; }
h3 { font-size: 15px; margin: 26px 0 8px; }
h4 { font-size: 11px; margin: 0 0 6px; color: var(--soft); text-transform: uppercase; letter-spacing: .07em; font-weight: 600; }
.lead { color: var(--soft); margin: 0 0 14px; max-width: 78ch; }
body > header .wide, nav, main { max-width: 1200px; margin: 0 auto; padding: 0 28px; }
body > header .wide { display: flex; gap: 32px; justify-content: space-between; align-items: flex-start; flex-wrap: wrap; padding-top: 36px; padding-bottom: 20px; }
.what { flex: 1 1 520px; min-width: 0; }
.source { color: var(--soft); overflow-wrap: anywhere; }
.flags { display: flex; flex-wrap: wrap; gap: 6px; margin: 14px 0 18px; }
.flag { background: var(--fill); border-radius: 5px; padding: 2px 8px; overflow-wrap: anywhere; }
.tiles { display: flex; flex-wrap: wrap; gap: 10px 34px; }
.tile .label { color: var(--soft); font-size: 12.5px; }
.tile .value { font-size: 24px; line-height: 1.25; font-weight: 600; font-variant-numeric: tabular-nums; }
nav { position: sticky; top: 0; z-index: 1; display: flex; gap: 22px; max-width: none; background: var(--bg); border-bottom: 1px solid var(--line); padding: 10px max(28px, calc((100vw - 1200px) / 2 + 28px)); }
nav a { color: var(--soft); text-decoration: none; }
nav a:hover, nav a:focus { color: var(--ink); }
main { padding-bottom: 72px; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 14px 18px; margin: 0 0 12px; }
.scroll { overflow-x: auto; }
.badge { background: var(--fill); border-radius: 9px; padding: 1px 9px; margin-left: 8px; font-size: 12px; color: var(--soft); white-space: nowrap; }
.shape { color: var(--soft); }

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

table { border-collapse: collapse; width: 100%; }
th { text-align: left; font-weight: 600; font-size: 12px; color: var(--soft); padding: 4px 12px 6px 0; }
th.num { text-align: right; }
td { border-top: 1px solid var(--line); padding: 6px 12px 6px 0; vertical-align: top; }
th:last-child, td:last-child { padding-right: 0; }
.sum td { font-weight: 600; }
.share { width: 34%; padding-left: 14px; }
.bar { height: 8px; border-radius: 4px; background: var(--fill); overflow: hidden; margin-top: 7px; min-width: 60px; }
.bar > div { height: 100%; background: var(--axis, var(--soft)); border-radius: 4px; min-width: 2px; }

.chart { display: block; width: 100%; height: auto; }
.chart text { font: 11px system-ui, sans-serif; fill: var(--soft); font-variant-numeric: tabular-nums; }
line.tick { stroke: var(--line); } text.tick { text-anchor: end; }
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
.swatch { display: inline-block; width: 11px; height: 11px; border-radius: 3px; margin-right: 8px; background: var(--m); vertical-align: -1px; }

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

llvm::StringLiteral getStyle() { return kStyle; }
llvm::StringLiteral getScript() { return kScript; }

} // namespace shoal::report
