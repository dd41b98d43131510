#!/usr/bin/python3
"""The page of an analysis, in a real browser: headless Chromium, driven by Selenium.

    tests/report_test.py REPORT_TOOL FORELOAD [unittest arguments]

Skipped (77) where there is no Chromium or no Selenium: Debian's chromium, chromium-driver and python3-selenium.
"""
import base64
import copy
import html.parser
import io
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import report_cases

REPORT_TOOL = ""
FORELOAD = ""
CHROMIUM = "/usr/bin/chromium"
CHROMEDRIVER = "/usr/bin/chromedriver"
FLAGS = ("--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
         "--disable-component-update --disable-sync --disable-dev-shm-usage --hide-scrollbars").split()
# Numbers that the page says in a sentence or draws as a mark.
SAID = re.compile(r"/(schema|prediction/(low|high)|what_if/\d+/(here|knee/x)|raw_against_record/samples|seconds|bytes_read)")


def why_not():
    """What is missing to run these tests, or nothing."""
    for path in (CHROMIUM, CHROMEDRIVER):
        if not shutil.which(path):
            return f"there is no {path} (Debian: chromium, chromium-driver)"
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "there is no Selenium (Debian: python3-selenium)"
    return None


def open_browser(profile):
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    options = Options()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(service=Service(CHROMEDRIVER), options=options)


class Numbers(html.parser.HTMLParser):
    """{JSON pointer: [(value, what is shown)]} of a page, and its commands."""

    def __init__(self, text):
        super().__init__()
        self.found, self.commands, self.scripts, self.open = {}, [], 0, None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "data" and "data-json" in attributes:
            self.open = [float(attributes["value"]), ""]
            self.found.setdefault(attributes["data-json"], []).append(self.open)
        if tag == "code":
            self.open = [None, ""]
            self.commands.append(self.open)
        self.scripts += tag == "script"

    def handle_endtag(self, tag):
        if tag in ("data", "code"):
            self.open = None

    def handle_data(self, data):
        if self.open:
            self.open[1] += data


def numbers_in(value, path=""):
    """{JSON pointer: number} of a document."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return {}
    if isinstance(value, (int, float)):
        return {path: float(value)}
    items = value.items() if isinstance(value, dict) else enumerate(value)
    found = {}
    for key, item in items:
        found.update(numbers_in(item, f"{path}/{key}"))
    return found


class ReportTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.top = pathlib.Path(tempfile.mkdtemp(prefix="foreload-report-"))
        cls.addClassCleanup(shutil.rmtree, cls.top, ignore_errors=True)
        cls.browser = open_browser(cls.top / "profile")
        cls.addClassCleanup(cls.browser.quit)
        cls.browser.set_page_load_timeout(60)

    def write(self, document, name="page"):
        source, page = self.top / f"{name}.json", self.top / f"{name}.html"
        source.write_text(json.dumps(document))
        done = subprocess.run([REPORT_TOOL, source, page], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return page

    def show(self, document, theme="light", width=1200, script=True):
        """Loads the page; whatever the browser had to say about it is an error."""
        return self.load(self.write(document), theme, width, script)

    def load(self, page, theme="light", width=1200, script=True):
        command = self.browser.execute_cdp_cmd
        command("Emulation.setScriptExecutionDisabled", {"value": not script})
        command("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": theme}]})
        command("Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False})
        self.browser.get(page.as_uri())
        self.assertEqual(self.browser.get_log("browser"), [])
        return page.read_text(encoding="utf-8")

    def ask(self, script, *arguments):
        return self.browser.execute_script(script, *arguments)

    def picture(self):
        from PIL import Image
        size = self.browser.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        shot = self.browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
        return Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB")

    def assert_painted(self, picture, width):
        """Not blank: text, bars and charts are there in their colours."""
        self.assertEqual(picture.width, width)
        self.assertGreater(picture.height, 900)
        colours = picture.getcolors(picture.width * picture.height)
        paper = max(colours)
        self.assertLess(paper[0], 0.97 * picture.width * picture.height)
        self.assertGreater(len(colours), 50)

    def test_it_renders_in_both_themes_and_widths(self):
        for case in (report_cases.fetch_bound, report_cases.prep_bound, report_cases.no_stall, report_cases.absurd,
                     report_cases.rates_without_accelerator):
            for theme in ("light", "dark"):
                for width in (1200, 360):
                    with self.subTest(case=case.__name__, theme=theme, width=width):
                        self.show(case(), theme, width)
                        self.assert_painted(self.picture(), width)
                        self.assertLessEqual(self.ask("return document.documentElement.scrollWidth"), width,
                                             "the page scrolls to the side")

    def test_dark_is_dark(self):
        paper = {}
        for theme in ("light", "dark"):
            self.show(report_cases.fetch_bound(), theme)
            paper[theme] = sum(self.picture().getpixel((2, 2)))
        self.assertGreater(paper["light"], 700)
        self.assertLess(paper["dark"], 150)

    def test_the_headline_says_the_finding(self):
        several = report_cases.prep_bound()
        several["job"]["accelerators"] = 8
        for document, finding in (
                (report_cases.fetch_bound(), r"Your accelerator waits 68 % of the time: storage is too slow\."),
                (report_cases.prep_bound(), r"Your accelerator waits 62 % of the time: samples are not prepared fast enough\."),
                (several, r"Your accelerators wait 62 % of the time: samples are not prepared fast enough\."),
                (report_cases.no_stall(), r"Your accelerator does not wait for data\."),
                (report_cases.rates_without_accelerator(),
                 r"Data can come at 615 samples/s; what your accelerator takes is not known\."),
                (report_cases.nothing(), r"Too little could be measured to say what your accelerator waits for\.")):
            self.show(document)
            headline = self.ask("return document.querySelector('h1').innerText").replace("\u00a0", " ")
            self.assertRegex(headline, finding)
            self.assertIn(headline, self.browser.title.replace("\u00a0", " "))

    def assert_numbers(self, document, page):
        wanted = numbers_in(document)
        for pointer, shown in page.found.items():
            for value, text in shown:
                self.assertEqual(value, wanted.get(pointer), pointer)
                self.assertTrue(text.strip(), pointer)
        missing = {pointer for pointer in wanted if pointer not in page.found and not SAID.fullmatch(pointer)}
        self.assertEqual(missing, set())

    def test_every_number_can_be_read_back(self):
        for case in (report_cases.fetch_bound, report_cases.prep_bound, report_cases.no_stall):
            document = case()
            self.show(document)
            page = Numbers(self.ask("return document.documentElement.outerHTML"))
            self.assert_numbers(document, page)

    def test_everything_is_there_without_javascript(self):
        document = report_cases.fetch_bound()
        self.show(document, script=False)
        root = self.browser.execute_cdp_cmd("DOM.getDocument", {})["root"]["nodeId"]
        text = self.browser.execute_cdp_cmd("DOM.getOuterHTML", {"nodeId": root})["outerHTML"]
        self.assertNotIn("<button", text)
        page = Numbers(text)
        self.assert_numbers(document, page)
        commands = [remedy[key] for remedy in document["remedies"] for key in ("command", "python") if remedy[key]]
        self.assertEqual([text for _, text in page.commands], commands)
        self.assert_painted(self.picture(), 1200)

    def test_a_click_copies_the_command(self):
        document = report_cases.fetch_bound()
        self.show(document)
        self.browser.execute_cdp_cmd("Browser.grantPermissions",
                                     {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]})
        for block in self.browser.find_elements("css selector", ".command"):
            button = block.find_element("css selector", "button")
            self.assertEqual(button.text, "Copy")
            button.click()
            copied = self.browser.execute_async_script(
                "const [button, done] = arguments;"
                "const wait = () => button.textContent === 'Copy' ? setTimeout(wait, 10)"
                "  : navigator.clipboard.readText().then(text => done([button.textContent, text]), e => done([String(e), '']));"
                "wait();", button)
            self.assertEqual(copied, ["Copied", block.find_element("css selector", "code").get_attribute("textContent")])

    def test_pointing_at_a_curve_reads_it_out(self):
        from selenium.webdriver import ActionChains
        document = report_cases.fetch_bound()
        self.show(document)
        chart = self.browser.find_element("css selector", "figure[data-what-if=cores] .chart")
        spots = chart.find_elements("css selector", ".spot")
        self.assertEqual(len(spots), 16)
        shown = "return [...document.querySelectorAll('.spot text')].filter(t => getComputedStyle(t).visibility == 'visible')" \
                ".map(t => t.textContent)"
        self.assertEqual(self.ask(shown), [])
        self.ask("arguments[0].scrollIntoView({block: 'center'})", chart)
        ActionChains(self.browser).move_to_element(spots[5].find_element("css selector", ".column")).perform()
        point = document["what_if"][1]["points"][5]
        self.assertEqual([text.replace("\u00a0", " ") for text in self.ask(shown)],
                         [f"6: {point['samples_per_s']:.0f} samples/s, {100 * point['utilisation']:.0f} % busy"])

    def test_labels_of_charts_do_not_overlap_in_a_real_font(self):
        script = """return [...document.querySelectorAll('svg.chart')].map(chart => {
            const box = element => { const b = element.getBoundingClientRect();
                                     return [b.left, b.right, b.top, b.bottom, element.textContent]; };
            return [box(chart), [...chart.querySelectorAll('text')].filter(t => !t.closest('.spot')).map(box)]; });"""
        for case in (report_cases.fetch_bound, report_cases.no_stall, report_cases.absurd):
            self.show(case())
            charts = self.ask(script)
            self.assertGreaterEqual(len(charts), 4)
            for frame, texts in charts:
                for i, (left, right, top, bottom, text) in enumerate(texts):
                    self.assertTrue(frame[0] - 1 <= left and right <= frame[1] + 1 and frame[2] - 1 <= top and
                                    bottom <= frame[3] + 1, f"{text} leaves the picture")
                    for other in texts[:i]:
                        # Boxes are taller than their letters.
                        apart = right <= other[0] or other[1] <= left or top >= other[3] - 4 or other[2] >= bottom - 4
                        self.assertTrue(apart, f"{text} and {other[4]} overlap")

    def test_text_has_contrast(self):
        script = """const light = c => { const [r, g, b] = c.match(/[0-9.]+/g).slice(0, 3).map(v => v / 255)
                .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
            const behind = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
                if (!c.endsWith(', 0)')) return c; } };
            const low = [];
            for (const e of document.querySelectorAll('p, h1, h2, h3, li, dt, dd, small, th, td, code, button, summary, em, text, data')) {
                const style = getComputedStyle(e);
                const [a, b] = [light(e.tagName == 'text' ? style.fill : style.color), light(behind(e))].sort((x, y) => y - x);
                if ((a + 0.05) / (b + 0.05) < 4.5) low.push([e.tagName, e.className, e.textContent.slice(0, 40)]);
            }
            return low;"""
        for theme in ("light", "dark"):
            self.show(report_cases.fetch_bound(), theme)
            self.assertEqual(self.ask(script), [], theme)

    def test_nothing_is_fetched(self):
        self.show(report_cases.fetch_bound())
        self.assertEqual(self.ask("return performance.getEntriesByType('resource').length"), 0)

    def test_names_stay_text(self):
        for name in report_cases.HOSTILE:
            with self.subTest(name=name[:40]):
                text = self.show(report_cases.hostile(name), width=360)
                self.assertEqual(Numbers(text).scripts, 1)
                self.assertEqual(self.ask("return [typeof window.harmed, document.images.length, document.scripts.length]"),
                                 ["undefined", 0, 1])
                self.assertLessEqual(self.ask("return document.documentElement.scrollWidth"), 360)
                for control in "\x00\x1b\x7f\u202e":
                    self.assertNotIn(control, text)

    def test_a_command_is_copied_whole_and_on_one_line(self):
        document = report_cases.fetch_bound()
        document["remedies"][0]["command"] = "foreload index '" + "n" * 4096 + "'\nreboot"
        self.show(document)
        shown = self.ask("return document.querySelector('.command code').textContent")
        self.assertIn("n" * 4096, shown)
        self.assertNotIn("\n", shown)

    def test_what_is_missing_or_wrong_is_left_out(self):
        for case in (report_cases.nothing, report_cases.all_null):
            self.show(case())
            self.assertEqual(self.ask("return document.querySelectorAll('section').length"), 0)
        whole = report_cases.fetch_bound()
        for key in whole:
            for wrong in (None, 0, "text", [], {}, [None, 1, "x", [], {}], {"x": {"y": []}, "here": [1]}, True):
                document = copy.deepcopy(whole)
                document[key] = wrong
                self.write(document)
        for key in whole:
            document = copy.deepcopy(whole)
            del document[key]
            self.show(document)
            self.assertGreater(self.ask("return document.querySelectorAll('section').length"), 5)

    def test_the_command_writes_such_a_page(self):
        data, page = self.top / "data", self.top / "report.html"
        subprocess.run([FORELOAD, "generate", data, "--images", "120"], check=True, capture_output=True, timeout=120)
        done = subprocess.run([FORELOAD, "analyze", data, "--storage", "8MB/s,1ms", "--no-cache", "--accelerator", "5000",
                               "--json", "--report", page], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        document = json.loads(done.stdout)
        self.load(page)
        # What is too slow, and whether it could be measured, depends on the machine and its load.
        finding = "Your accelerator" if document["prediction"] else "Too little could be measured"
        self.assertIn(finding, self.ask("return document.querySelector('h1').innerText"))
        self.assert_numbers(document, Numbers(self.ask("return document.documentElement.outerHTML")))
        self.assertEqual(self.ask("return document.querySelectorAll('.chart').length"), len(document["what_if"]))
        self.assert_painted(self.picture(), 1200)

    def test_what_is_no_document_is_no_crash(self):
        for document in (None, 3, "text", [], [1], True):
            self.write(document)


def main():
    global REPORT_TOOL, FORELOAD
    if len(sys.argv) < 3 or any(word.startswith("-") for word in sys.argv[1:3]):
        sys.exit(f"usage: {sys.argv[0]} REPORT_TOOL FORELOAD [unittest arguments]")
    REPORT_TOOL, FORELOAD = (str(pathlib.Path(sys.argv.pop(1)).resolve()) for _ in range(2))
    if reason := why_not():
        print(f"skipped: {reason}", file=sys.stderr)
        sys.exit(77)
    unittest.main(module="__main__")


if __name__ == "__main__":
    main()
