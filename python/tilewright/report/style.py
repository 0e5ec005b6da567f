# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The look of the page: one style sheet, light and dark, no external resources."""

CSS = """
:root { color-scheme: light dark; --bg:#fbfbfa; --fg:#1d2125; --dim:#6a7178; --line:#e3e4e2; --card:#fff;
  --accent:#2f6fb3; --code:#f4f4f2; --warn:#b3541e; }
@media (prefers-color-scheme: dark) { :root { --bg:#16181b; --fg:#e4e6e8; --dim:#969da5; --line:#2c3035; --card:#1d2024;
  --accent:#6aa5e3; --code:#1a1d20; --warn:#e0915c; } }
* { box-sizing: border-box; }
body { margin:0; background:var(--bg); color:var(--fg);
  font:15px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; }
main { max-width:1320px; margin:0 auto; padding:40px 28px 80px; }
h1 { font-size:27px; font-weight:650; letter-spacing:-.01em; margin:0 0 2px; }
h2 { font-size:18px; font-weight:650; margin:0 0 4px; }
section { margin-top:44px; }
.note, .sub { color:var(--dim); margin:0 0 14px; max-width:80ch; }
.cards { display:grid; grid-template-columns:repeat(auto-fit, minmax(150px, 1fr)); gap:12px; margin-top:24px; }
.card { background:var(--card); border:1px solid var(--line); border-radius:8px; padding:12px 16px; }
.card b { display:block; font-size:21px; font-weight:620; font-variant-numeric:tabular-nums; }
.card span { color:var(--dim); font-size:13px; }
.scroll { overflow-x:auto; background:var(--card); border:1px solid var(--line); border-radius:8px; }
table { border-collapse:collapse; width:100%; font-size:13.5px; }
th { text-align:left; color:var(--dim); font-weight:550; white-space:nowrap; padding:8px 12px;
  border-bottom:1px solid var(--line); }
td { padding:7px 12px; border-bottom:1px solid var(--line); vertical-align:top; }
tr:last-child td { border-bottom:0; }
.n { text-align:right; font-variant-numeric:tabular-nums; white-space:nowrap; }
code, pre { font:12.5px/1.5 ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
td code { white-space:nowrap; }
small { color:var(--dim); display:block; overflow-wrap:anywhere; }
td:first-child { min-width:250px; } td.n:first-child { min-width:0; }
details td:first-child { min-width:0; }
.bar { width:80px; height:8px; background:var(--line); border-radius:4px; overflow:hidden; margin-top:7px; }
.bar i { display:block; height:100%; background:var(--accent); border-radius:4px; }
.strip { display:flex; height:34px; border-radius:8px; overflow:hidden;
  border:1px solid var(--line); margin-bottom:14px; }
.strip i { display:block; min-width:1px; border-right:1px solid var(--bg); }
.dot { display:inline-block; width:10px; height:10px; border-radius:3px; margin-right:8px; }
details { background:var(--card); border:1px solid var(--line); border-radius:8px; margin-top:8px; }
summary { cursor:pointer; padding:9px 14px; display:flex; gap:16px; align-items:baseline; }
summary::before { content:"▸"; color:var(--dim); }
details[open] > summary::before { content:"▾"; }
summary b { min-width:96px; font-weight:600; }
summary span { color:var(--dim); font-size:13px; font-variant-numeric:tabular-nums; }
details > .in { padding:2px 14px 14px; }
details .scroll { border-radius:6px; }
pre { margin:10px 0 0; padding:12px 14px; background:var(--code); border-radius:6px; overflow:auto; max-height:560px; }
.o { color:var(--accent); } .s { color:var(--warn); } .v { color:var(--dim); }
.picture { overflow:auto; max-height:720px; background:var(--card); border:1px solid var(--line); border-radius:8px; }
.picture rect { fill:var(--bg); stroke-width:2; }
.picture text { font:11px ui-monospace, Menlo, Consolas, monospace; fill:var(--fg); }
.picture .t { font-weight:650; } .picture .d { fill:var(--dim); }
.picture path { fill:none; stroke:var(--dim); stroke-width:1.2; } .picture .far { opacity:.35; }
.sparse { display:grid; grid-template-columns:repeat(auto-fill, minmax(400px, 1fr)); gap:12px; margin:0 0 12px; }
.sparse figure { margin:0; display:flex; gap:16px; background:var(--card); border:1px solid var(--line);
  border-radius:8px; padding:14px; min-width:0; }
.sparse img { width:168px; height:168px; flex-shrink:0; image-rendering:pixelated; background:var(--bg);
  border:1px solid var(--line); border-radius:4px; }
.sparse figcaption { min-width:0; overflow-wrap:anywhere; } .sparse ul { list-style:none; margin:8px 0; padding:0; }
.sparse li small { padding-left:18px; }
.split { display:flex; width:150px; height:12px; border-radius:4px; overflow:hidden; margin-top:5px; }
.split i { display:block; height:100%; }
.maps { display:grid; grid-template-columns:repeat(auto-fill, minmax(160px, 1fr)); gap:12px; margin:0 0 12px; }
.maps figure { margin:0; background:var(--card); border:1px solid var(--line); border-radius:8px; padding:12px; }
.maps img { width:100%; image-rendering:pixelated; background:var(--bg); border:1px solid var(--line); display:block; }
.maps figcaption { margin-top:8px; }
.plot { background:var(--card); border:1px solid var(--line); border-radius:8px; padding:14px; overflow-x:auto;
  margin:0 0 12px; }
.plot svg { display:block; max-width:100%; height:auto; } .plot .g { stroke:var(--line); fill:none; }
.plot .l { fill:none; stroke-width:1.8; } .plot text { font-size:11px; fill:var(--dim); }
.plot .t { fill:var(--fg); font-size:12px; } .plot span { font-size:13px; margin-right:18px; color:var(--dim); }
footer { margin-top:56px; color:var(--dim); font-size:13px; }
"""

#: Colors of kernels, in order of their time; the rest is grey.
PALETTE = (
    "#3f7fc1",
    "#d98b3a",
    "#5a9e6f",
    "#b5657f",
    "#8272b8",
    "#c9a93e",
    "#4aa3a8",
    "#a4705a",
    "#7b8fa6",
    "#93b15a",
)
GREY = "#9aa0a6"
