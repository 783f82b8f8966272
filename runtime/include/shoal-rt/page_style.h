// How pages look, in light and in dark: what the compiler's pages and the run's have in common.
#ifndef SHOAL_RT_PAGE_STYLE_H
#define SHOAL_RT_PAGE_STYLE_H

#include <string_view>

namespace shoal::rt {

inline constexpr std::string_view kPageStyle = R"css(
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

table { border-collapse: collapse; width: 100%; }
th { text-align: left; font-weight: 600; font-size: 12px; color: var(--soft); padding: 4px 12px 6px 0; }
th.num { text-align: right; }
td { border-top: 1px solid var(--line); padding: 6px 12px 6px 0; vertical-align: top; }
th:last-child, td:last-child { padding-right: 0; }
.sum td { font-weight: 600; }
.share { width: 34%; padding-left: 14px; }
.bar { height: 8px; border-radius: 4px; background: var(--fill); overflow: hidden; margin-top: 7px; min-width: 60px; }
.bar > div { height: 100%; background: var(--axis, var(--soft)); border-radius: 4px; min-width: 2px; }
line.tick { stroke: var(--line); }
.swatch { display: inline-block; width: 11px; height: 11px; border-radius: 3px; margin-right: 8px; background: var(--m); vertical-align: -1px; }
)css";

} // namespace shoal::rt

#endif // SHOAL_RT_PAGE_STYLE_H
