#include "report/style.h"

namespace foreload {

// Classes: tone-1 … tone-4 and tone-quiet are what report/tone.h says; the rest is named as the pieces that use it.
const std::string_view kPageStyle = R"css(
:root {
  --paper: #fbfbf9; --card: #ffffff; --ink: #1b1f24; --soft: #565e68; --rule: #dfe1dc; --track: #eceeea;
  --one: #2468ad; --two: #9a6b00; --two-pale: #f7e6b8; --three: #bd430a; --three-pale: #f8d9c8;
  --four: #6a4aa3; --four-pale: #e4dbf3; --quiet: #7d858e; --good: #1f7a4d;
  color-scheme: light;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --paper: #14171a; --card: #1c2024; --ink: #e8e9ea; --soft: #a3abb4; --rule: #31373d; --track: #262b30;
    --one: #5a9ee0; --two: #e2b23e; --two-pale: #4a3c14; --three: #f58653; --three-pale: #552a17;
    --four: #b79bee; --four-pale: #3a2f52; --quiet: #89929c; --good: #63c494;
    color-scheme: dark;
  }
}
* { box-sizing: border-box; }
html { font: 100%/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif; -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--paper); color: var(--ink); overflow-wrap: anywhere; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
main { max-width: 66rem; margin: 0 auto; padding: clamp(1.5rem, 5vw, 4rem) clamp(1rem, 4vw, 2.5rem) 3rem; }
.patterns { position: absolute; }
h1 { font-size: clamp(1.75rem, 4.6vw, 2.75rem); line-height: 1.15; font-weight: 650; letter-spacing: -0.015em; margin: 0 0 1rem; max-width: 24em; text-wrap: balance; }
h2 { font-size: 1.375rem; line-height: 1.25; font-weight: 640; letter-spacing: -0.005em; margin: 0 0 0.5rem; }
h2 + div, h2 + ul { margin-top: 1rem; }
h3 { font-size: 1rem; line-height: 1.35; font-weight: 640; margin: 0 0 0.5rem; }
p { margin: 0 0 0.75rem; max-width: 44rem; text-wrap: pretty; }
ul, ol { margin: 0; padding: 0; list-style: none; }
section { margin-top: clamp(2.5rem, 6vw, 4rem); }
footer { margin-top: 4rem; padding-top: 1rem; border-top: 1px solid var(--rule); }
.about, .intro, .note, footer, figcaption p, dt { color: var(--soft); }
.about { font-size: 0.9375rem; margin-bottom: 0.75rem; }
.lead { font-size: 1.125rem; }
.intro { margin-bottom: 1.25rem; }
.note { font-size: 0.9375rem; }
footer { font-size: 0.875rem; }
data, .number { font-variant-numeric: tabular-nums; }
data { white-space: nowrap; }

.key { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: 1.25rem 2rem; margin: 1.75rem 0 0; padding-top: 1.25rem; border-top: 1px solid var(--rule); }
.key dt { font-size: 0.875rem; line-height: 1.3; }
.key dd { margin: 0.125rem 0 0; font-size: 1.625rem; line-height: 1.25; font-weight: 620; letter-spacing: -0.01em; }
.key data { white-space: normal; }
.key dd small { display: block; font-size: 0.875rem; font-weight: 400; letter-spacing: 0; color: var(--soft); }
.facts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 10rem), 1fr)); gap: 1rem 2rem; margin: 0 0 1.75rem; }
.facts dt { font-size: 0.875rem; line-height: 1.3; }
.facts dd { margin: 0; }
.facts .long { grid-column: 1 / -1; }

.area.tone-1 { fill: var(--one); }
.area.tone-2 { fill: url(#pattern-2); }
.area.tone-3 { fill: url(#pattern-3); }
.area.tone-4 { fill: url(#pattern-4); }
.area.tone-quiet { fill: var(--quiet); }
.chart .area { opacity: 0.62; }
#pattern-2 rect { fill: var(--two-pale); } #pattern-2 circle { fill: var(--two); }
#pattern-3 rect { fill: var(--three-pale); } #pattern-3 .ink { fill: var(--three); }
#pattern-4 rect { fill: var(--four-pale); } #pattern-4 path { stroke: var(--four); stroke-width: 1.4; }
.line { fill: none; stroke-width: 2.25; stroke-linejoin: round; stroke-linecap: round; }
.line.tone-1 { stroke: var(--one); }
.line.tone-2 { stroke: var(--two); stroke-dasharray: 7 4; }
.line.tone-3 { stroke: var(--three); stroke-dasharray: 2 4.5; }
.line.tone-4 { stroke: var(--four); stroke-dasharray: 9 4 2 4; }
.line.tone-quiet { stroke: var(--soft); stroke-width: 1.5; stroke-dasharray: 4 4; }
.dot.tone-1 { fill: var(--one); } .dot.tone-2 { fill: var(--two); } .dot.tone-3 { fill: var(--three); }
.dot.tone-4 { fill: var(--four); } .dot.tone-quiet { fill: var(--soft); }

.legend { display: flex; flex-wrap: wrap; gap: 0.25rem 1.75rem; font-size: 0.9375rem; margin: 0.625rem 0 0; }
.legend li { display: flex; align-items: center; gap: 0.5rem; }
.legend b { font-weight: 620; }
.swatch { width: 1.5rem; height: 0.875rem; flex: none; }
.swatch rect { rx: 3px; }

.bar { display: block; width: 100%; height: 1.5rem; border-radius: 0.3125rem; background: var(--track); }
.bar .area { stroke: var(--paper); stroke-width: 1.5; }
.chart text { fill: var(--ink); font-variant-numeric: tabular-nums; }
.epochs { display: grid; gap: 2rem; }
.stacked .bar { height: 2.5rem; }
.bar-rows { display: grid; gap: 0.625rem; }
.bar-rows li { display: grid; grid-template-columns: minmax(0, 13.5rem) minmax(0, 1fr) 15rem; gap: 0.125rem 1.25rem; align-items: center; }
.bar-rows .marked .row-name { font-weight: 620; }
.row-name em { font-style: normal; font-weight: 400; font-size: 0.8125rem; color: var(--soft); border: 1px solid var(--rule); border-radius: 1rem; padding: 0.0625rem 0.5rem; margin-left: 0.5rem; white-space: nowrap; }
.row-numbers { display: grid; grid-template-columns: 8.25rem 1fr; gap: 0.75rem; text-align: right; font-size: 0.9375rem; }
.row-numbers data:only-child { grid-column: 1 / -1; }
.row-numbers data + data { color: var(--soft); }
.bar-groups { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 2rem 3rem; }
.bar-groups li { grid-template-columns: 9.25rem minmax(0, 1fr) 6rem; }
.bar-groups .row-numbers { display: block; }
.bar-groups .bar { height: 1.125rem; }

.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 2.5rem 3rem; margin-top: 1.5rem; }
figure { margin: 0; min-width: 0; max-width: 38rem; display: grid; grid-row: span 3; grid-template-rows: subgrid; row-gap: 0.25rem; }
.choices { display: grid; gap: 2rem; margin-top: 2.5rem; }
figcaption p { margin: 0 0 0.5rem; font-size: 0.9375rem; }
.chart { display: block; width: 100%; height: auto; align-self: end; font-size: 12px; }
.chart .axes text { fill: var(--soft); }
.grid { stroke: var(--rule); } .zero, .tick { stroke: var(--soft); }
.stalk { stroke: var(--ink); stroke-width: 1.25; } .dashed { stroke-dasharray: 3 3; }
.mark text { font-weight: 620; paint-order: stroke; stroke: var(--paper); stroke-width: 4px; }
.here { fill: var(--paper); stroke: var(--ink); stroke-width: 2.5; }
.knee { fill: var(--ink); stroke: var(--paper); stroke-width: 1.5; }
.column { fill: transparent; }
.spot .hair, .spot circle, .spot text { visibility: hidden; pointer-events: none; }
.spot:hover .hair, .spot:hover circle, .spot:hover text { visibility: visible; }
.hair { stroke: var(--soft); stroke-width: 1; } .spot circle { fill: var(--one); stroke: var(--paper); stroke-width: 1.5; }

.remedies { display: grid; gap: 1rem; }
.remedies > li { display: grid; grid-template-columns: 9.5rem minmax(0, 1fr); gap: 0.25rem 1.5rem; background: var(--card); border: 1px solid var(--rule); border-radius: 0.625rem; padding: 1.125rem 1.375rem; }
.gain { font-size: 1.625rem; line-height: 1.2; font-weight: 650; letter-spacing: -0.01em; color: var(--good); }
.gain.none { color: var(--soft); font-size: 1.125rem; }
.gain data { white-space: normal; }
.gain small { display: block; font-size: 0.875rem; font-weight: 400; letter-spacing: 0; color: var(--soft); margin-top: 0.25rem; }
.remedies p:last-child { margin-bottom: 0; }
.command { position: relative; margin: 0.625rem 0 0; }
pre { margin: 0; font: 0.875rem/1.5 ui-monospace, "SFMono-Regular", Menlo, Consolas, "Liberation Mono", monospace; background: var(--track); border-radius: 0.375rem; padding: 0.625rem 0.875rem; white-space: pre-wrap; }
pre code { font: inherit; user-select: all; -webkit-user-select: all; }
.command.has-button pre { padding-right: 5.5rem; }
button { position: absolute; top: 0.3125rem; right: 0.3125rem; font: inherit; font-size: 0.8125rem; line-height: 1.5; color: var(--ink); background: var(--card); border: 1px solid var(--rule); border-radius: 0.3125rem; padding: 0.1875rem 0.625rem; cursor: pointer; }
button:hover { border-color: var(--soft); }
:focus-visible { outline: 2px solid var(--one); outline-offset: 2px; }

.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 0.9375rem; line-height: 1.4; }
caption { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
th, td { text-align: left; vertical-align: baseline; padding: 0.4375rem 1.75rem 0.4375rem 0; border-bottom: 1px solid var(--rule); font-weight: 400; min-width: 5rem; }
tr > :last-child { padding-right: 0; }
tbody th:not(.number) { min-width: 10rem; }
details th, details td { padding-right: 1rem; }
td:last-child:not(.number) { min-width: 12rem; }
thead th { font-size: 0.875rem; color: var(--soft); white-space: nowrap; border-bottom-color: var(--soft); }
.number { text-align: right; white-space: nowrap; }
td:not(.number) { color: var(--soft); }
.group { font-weight: 640; padding-top: 1.25rem; }
tbody:first-of-type .group { padding-top: 0.75rem; }
tbody:last-child tr:last-child > * { border-bottom: 0; }
details { margin-top: 0.75rem; }
summary { cursor: pointer; color: var(--soft); font-size: 0.9375rem; }
details[open] summary { margin-bottom: 0.5rem; }
.missing { display: grid; gap: 0.625rem; border-left: 3px solid var(--rule); padding-left: 1rem; }
.missing b { font-weight: 620; }

@media (max-width: 40rem) {
  .bar-rows li, .bar-groups li { grid-template-columns: minmax(0, 1fr) auto; }
  .bar-rows .bar { grid-row: 2; grid-column: 1 / -1; }
  .choices .row-name, .choices .row-numbers { grid-column: 1 / -1; }
  .choices .row-numbers { justify-content: start; }
  .key dd { font-size: 1.25rem; }
  .remedies > li { grid-template-columns: minmax(0, 1fr); gap: 0.75rem; padding: 1rem 1.125rem; }
  .row-numbers { grid-template-columns: auto auto; }
}
@media print {
  html { font-size: 70%; }
  main { max-width: none; padding: 0; }
  section { margin-top: 2rem; }
  figure, .remedies > li, .epochs > div, .bar-groups > div, tr { break-inside: avoid; }
  h2, h3 { break-after: avoid; }
  button, details { display: none; }
  .wide { overflow: visible; }
}
)css";
const std::string_view kPageStyleHash = "5y884K+Kn4Z5x1vsviojXCt88MHlpAuyfeosa5QCaDU=";

const std::string_view kPageScript = R"js(
"use strict";
for (const block of document.querySelectorAll(".command")) {
  const code = block.querySelector("code");
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    let copied = false;
    try {
      await navigator.clipboard.writeText(code.textContent);
      copied = true;
    } catch {
      getSelection().selectAllChildren(code);
      copied = document.execCommand("copy");
    }
    button.textContent = copied ? "Copied" : "Selected";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  block.classList.add("has-button");
  block.append(button);
}
)js";
const std::string_view kPageScriptHash = "AWYr4wcKdjbmqbUXSkg/eKlmxv13xUG4Ay82ZV1FbkE=";

}  // namespace foreload
