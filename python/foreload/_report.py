"""Stats as people read them: the table of `foreload run`, and the same as HTML."""
from __future__ import annotations

import html
from typing import Any, Dict, List

from ._foreload import format_bytes

HEADER = (f"{'epoch':>5} {'seconds':>8} {'samples/s':>9} {'busy':>7} {'fetch stall':>11} {'prep stall':>10} "
          f"{'from memory':>11} {'from source':>11}")


DISK_HEADER = (f"{'epoch':>5} {'seconds':>7} {'samples/s':>9} {'busy':>7} {'fetch':>7} {'prep':>7} "
               f"{'memory':>10} {'disk':>10} {'source':>10}")


def disk_line(epoch: Dict[str, Any]) -> str:
    """One column more, and still no more than 80."""
    stall, moved = epoch["stall"], epoch["bytes"]
    return (f"{epoch['epoch']:>5} {epoch['seconds']:>7.2f} {epoch['samples'] / max(epoch['seconds'], 1e-9):>9.0f} {'-':>7} "
            f"{100 * stall['fetch']:>5.1f} % {100 * stall['prep']:>5.1f} % {format_bytes(moved['memory']):>10} "
            f"{format_bytes(moved['disk']):>10} {format_bytes(moved['source']):>10}")


def line(epoch: Dict[str, Any]) -> str:
    stall, moved = epoch["stall"], epoch["bytes"]
    return (f"{epoch['epoch']:>5} {epoch['seconds']:>8.2f} {epoch['samples'] / max(epoch['seconds'], 1e-9):>9.0f} {'-':>7} "
            f"{100 * stall['fetch']:>9.1f} % {100 * stall['prep']:>8.1f} % {format_bytes(moved['memory']):>11} "
            f"{format_bytes(moved['source']):>11}")


def counted(count: int, one: str) -> str:
    return f"{count:,} {one}" if count == 1 else f"{count:,} {one}s"


def summary(stats: Dict[str, Any]) -> str:
    epochs: List[Dict[str, Any]] = stats["epochs"]
    if not epochs:
        return "no epoch has begun"
    has_disk = stats["disk"]["capacity_bytes"] > 0
    text = f"{DISK_HEADER}\n{disk_line(epochs[-1])}" if has_disk else f"{HEADER}\n{line(epochs[-1])}"
    bad = [entry for entry in stats["quarantine"] if entry["epoch"] == epochs[-1]["epoch"]]
    if bad:
        text += f"\nreplaced: {counted(len(bad), 'sample')}; the first: {bad[0]['key']} ({bad[0]['reason']})"
    return text


def page(title: str, stats: Dict[str, Any]) -> str:
    cells = ["epoch", "samples", "seconds", "samples/s", "fetch stall", "prep stall", "from memory", "from disk", "from source",
             "replaced"]
    rows = [[str(e["epoch"]), f"{e['samples']:,}", f"{e['seconds']:.2f}", f"{e['samples_per_s']:,.0f}",
             f"{100 * e['stall']['fetch']:.1f} %", f"{100 * e['stall']['prep']:.1f} %", format_bytes(e["bytes"]["memory"]),
             format_bytes(e["bytes"]["disk"]), format_bytes(e["bytes"]["source"]), str(e["replaced"])] for e in stats["epochs"][-10:]]
    head = "".join(f"<th>{cell}</th>" for cell in cells)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    cache = stats["cache"]
    note = (f"{counted(stats['threads'], 'prep thread')}; budget {format_bytes(stats['memory_budget_bytes'])}, cached "
            f"{format_bytes(cache['used_bytes'])} of {format_bytes(cache['capacity_bytes'])}")
    return f"<p><b>{html.escape(title)}</b></p><table><tr>{head}</tr>{body}</table><p>{html.escape(note)}</p>"
