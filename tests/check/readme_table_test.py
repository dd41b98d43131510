#!/usr/bin/python3
"""tools/readme-table writes what the results say, and nothing that they do not."""
import json
import pathlib
import shutil
import subprocess
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
README = "before\n<!-- bench: written by tools/readme-table -->\nold\n<!-- /bench -->\nafter\n"


def row(name, value, unit="ratio", goal="-", ok=True):
    return {"name": name, "value": value, "unit": unit, "goal": goal, "ok": ok, "how": "2 cores"}


class ReadmeTableTest(unittest.TestCase):
    def setUp(self):
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="foreload-table-"))
        self.addCleanup(shutil.rmtree, self.top)
        for folder in ("tools", "bench"):
            (self.top / folder).mkdir()
        shutil.copy(TOP / "tools" / "readme-table", self.top / "tools")
        (self.top / "README.md").write_text(README)

    def run_tool(self, *arguments):
        return subprocess.run([self.top / "tools" / "readme-table", *arguments], capture_output=True, text=True)

    def written(self, rows):
        (self.top / "bench" / "results.json").write_text(json.dumps(rows))
        self.assertNotEqual(self.run_tool("--check").returncode, 0)
        self.assertEqual(self.run_tool().returncode, 0)
        self.assertEqual(self.run_tool("--check").returncode, 0)
        text = (self.top / "README.md").read_text()
        self.assertTrue(text.startswith("before\n") and text.endswith("<!-- /bench -->\nafter\n"), text)
        return text

    def test_figures_with_goals_are_listed_met_or_missed(self):
        text = self.written([row("loader/a", 1.5, goal="≥ 1"), row("loader/b", 0.5, goal="≥ 1", ok=False), row("loader/c", 2.0)])
        self.assertIn("| `loader/a` | 1.5 ratio | ≥ 1 | met |", text)
        self.assertIn("| `loader/b` | 0.5 ratio | ≥ 1 | **missed** |", text)
        self.assertNotIn("loader/c", text)
        self.assertNotIn("torch", text)

    def test_the_comparison_has_a_column_per_loader(self):
        text = self.written([row("peers/torch/raw_against_torch_generated", 3.456),
                             row("peers/torch/python_loop_against_cpp_loop", 0.99, goal="≥ 0.97"),
                             row("peers/torch/torch_rate", 300.0, "images/s"), row("peers/torch/raw_rate", 1036.8, "images/s"),
                             row("peers/torch/torch_cpu_per_image", 0.0066, "s"),
                             row("peers/torch/converted_peak_memory_of_process_tree", 9e8, "bytes")])
        self.assertIn("| rate against torch's | 1 | **3.46** | - |", text)
        self.assertIn("| rate | 300 images/s | 1,037 images/s | - |", text)
        self.assertIn("| cpu per image | 6.6 ms | - | - |", text)
        self.assertIn("| peak memory of process tree | - | - | 900 MB |", text)
        self.assertIn("| `peers/torch/python_loop_against_cpp_loop` | 0.99 ratio |", text)


if __name__ == "__main__":
    unittest.main()
