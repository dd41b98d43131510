#!/usr/bin/python3
"""tools/check finds what it is there to find, and nothing in clean code."""
import pathlib
import shutil
import subprocess
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]

CLEAN_HEADER = "#pragma once\n\nnamespace foreload {\n\nint one();\n\n}  // namespace foreload\n"
CLEAN_CODE = '#include "base/one.h"\n\nnamespace foreload {\n\nint one() {\n  return 1;\n}\n\n}  // namespace foreload\n'


class CheckTest(unittest.TestCase):
    def setUp(self):
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="foreload-check-"))
        self.addCleanup(shutil.rmtree, self.top)
        (self.top / "tools").mkdir()
        shutil.copy(TOP / "tools" / "check", self.top / "tools" / "check")
        shutil.copy(TOP / ".clang-format", self.top / ".clang-format")
        self.write("src/base/one.h", CLEAN_HEADER)
        self.write("src/base/one.cc", CLEAN_CODE)

    def write(self, name, text):
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run_check(self, *checks):
        return subprocess.run([self.top / "tools" / "check", *checks], capture_output=True, text=True)

    def assert_found(self, check, place):
        done = self.run_check(check)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn(place, done.stdout)

    def test_clean_code_passes(self):
        done = self.run_check()
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_finds_unformatted_code(self):
        self.write("src/base/one.cc", CLEAN_CODE.replace("  return", " return"))
        self.assert_found("format", "src/base/one.cc:5")

    def test_finds_includes_against_the_order(self):
        self.write("src/base/two.cc", '#include "plan/schedule.h"\n')
        self.assert_found("includes", "src/base/two.cc:1")
        self.write("src/base/two.cc", "")
        self.write("src/lab/model.cc", '#include "base/one.h"\n#include "tier/arena.h"\n')
        self.assert_found("includes", "src/lab/model.cc:2")

    def test_finds_internal_headers_in_public_ones(self):
        self.write("include/foreload/a.h", '#pragma once\n#include "base/one.h"\n')
        self.assert_found("includes", "include/foreload/a.h:2")

    def test_finds_types_of_one_name(self):
        self.write("src/base/a.h", "struct Place;\nstruct Place::Inner {\n};\n\nclass Place final : public Base {\n};\n")
        self.write("src/base/a_testing.h", "struct Place {\n};\n")
        self.assertEqual(self.run_check("types").returncode, 0)
        self.write("src/plan/b.h", "\nenum class Place : int { kHere };\n")
        self.assert_found("types", "src/plan/b.h:2")

    def test_finds_folders_without_a_place(self):
        self.write("src/misc/a.cc", '#include "base/one.h"\n')
        self.assert_found("includes", "src/misc/a.cc:1")

    def test_finds_third_party_headers_outside_their_place(self):
        self.write("src/tier/a.cc", "#include <jpeglib.h>\n")
        self.assert_found("includes", "src/tier/a.cc:1")
        self.write("src/tier/a.cc", "")
        self.write("src/prep/jpeg_a.cc", "#include <jpeglib.h>\n")
        self.assertEqual(self.run_check("includes").returncode, 0)

    def test_finds_headers_that_need_others(self):
        self.write("src/base/two.h", "#pragma once\n\nstd::string two();\n")
        self.assert_found("headers", "src/base/two.h:1")

    def test_finds_headers_without_guard(self):
        self.write("src/base/one.h", CLEAN_HEADER.replace("#pragma once", ""))
        self.assert_found("headers", "src/base/one.h:1")

    def test_finds_long_functions(self):
        body = "  one();\n" * 59
        self.write("src/base/two.cc", f"namespace foreload {{\n\nvoid fits() {{\n{body[9:]}}}\n\n}}  // namespace foreload\n")
        self.assertEqual(self.run_check("sizes").returncode, 0)
        self.write("src/base/two.cc", f"namespace foreload {{\n\nvoid f() {{\n{body}}}\n\n}}  // namespace foreload\n")
        self.assert_found("sizes", "src/base/two.cc:3")
        # The braces of initialisers, strings and digits do not mislead it.
        head = 'class A {\n public:\n  A(int a,\n    int b)\n      : a_{a}, b_{1\'000} {\n    one("{");\n'
        self.write("src/base/two.cc", head + "    one();\n" * 57 + "  }\n};\n")
        self.assert_found("sizes", "src/base/two.cc:3")

    def test_finds_long_files(self):
        self.write("src/base/two.cc", "int x;\n" * 401)
        self.assert_found("sizes", "src/base/two.cc:400")

    def test_finds_words_of_unfinished_work(self):
        self.write("src/base/two.cc", "\n// TO" "DO\n")
        self.assert_found("words", "src/base/two.cc:2")


if __name__ == "__main__":
    unittest.main()
