#!/usr/bin/python3
"""What an agent tells Prometheus, as whole programs: a real agent, real jobs, real connections.

    tests/metrics_test.py FORELOAD [unittest arguments]
"""
import http.client
import json
import os
import pathlib
import random
import re
import signal
import socket
import time

import program
from program import amount, generated, seeded, wait_until

DASHBOARD = pathlib.Path(__file__).resolve().parent.parent / "docs" / "grafana" / "foreload-host.json"
IMAGES = 120
SERIES = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)\{(.*)\} (\S+)')
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)')


def parse(text):
    """{name: {labels: value}}, and which names are counters. Raises when the text breaks the format."""
    families, counters, family = {}, set(), None
    assert text.endswith("\n")
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            family = line.split(" ", 3)[2]
            assert family not in families and line.split(" ", 3)[3], line
            families[family] = {}
            continue
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name == family and kind in ("counter", "gauge"), line
            assert (kind == "counter") == name.endswith("_total"), line
            counters |= {name} if kind == "counter" else set()
            continue
        match = SERIES.fullmatch(line)
        assert match and match[1] == family, line
        labels, rest = {}, match[2]
        while rest:
            label = LABEL.match(rest)
            assert label and label[1] not in labels, line
            labels[label[1]], rest = label[2], rest[label.end():]
        key = tuple(sorted(labels.items()))
        assert key not in families[family], line
        families[family][key] = float(match[3])
    return families, counters


class Agent:
    def __init__(self, test, *arguments, metrics="0"):
        self.process = test.start("agent", "--host", test.host, "--memory", "1GiB", "--json", "--metrics", metrics,
                                  *arguments)
        text = ""
        while not text.endswith("}\n"):
            line = self.process.stdout.readline()
            assert line, self.process.communicate()
            text += line
        self.report = json.loads(text)
        self.address = re.fullmatch(r"http://(.*)/metrics", self.report["metrics"])[1]

    def ask(self, path, method="GET"):
        connection = http.client.HTTPConnection(self.address, timeout=30)
        try:
            connection.request(method, path)
            answer = connection.getresponse()
            return answer, answer.read().decode()
        finally:
            connection.close()

    def scrape(self):
        answer, text = self.ask("/metrics")
        assert answer.status == 200, text
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4"), answer.headers
        return parse(text)

    def learners(self):
        """By stream: {(name, own label): value}."""
        found = {}
        for name, series in self.scrape()[0].items():
            for key, value in series.items():
                labels = dict(key)
                own = next((labels[one] for one in ("cause", "tier", "reason", "by_process") if one in labels), "")
                if "stream" in labels:
                    found.setdefault(labels["stream"], {"process": int(labels["process"])})[name, own] = value
        return found


class MetricsTest(program.ProgramTest):
    def setUp(self):
        super().setUp()
        self.host = f"test-{os.getpid()}-{random.randrange(10**9)}"
        self.data = generated(IMAGES)

    def job(self, *arguments, batch=8):
        return self.start("run", self.data, "--host", self.host, "--memory", "1GiB", "--batch", batch, "--seed", 3, "--hash",
                          "--json", *arguments)

    def done(self, process):
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, err)
        return json.loads(out)

    def wait_for(self, condition, what):
        self.assertTrue(wait_until(condition, 60), what)

    def observed(self):
        return self.report("top", "--host", self.host)

    def test_counters_of_a_running_job_only_grow(self):
        agent = Agent(self)
        job = self.job("--epochs", 1000, "--accelerator", 400)
        before, seen = {}, 0
        deadline = time.monotonic() + 60
        while seen < 40 and time.monotonic() < deadline:
            families, counters = agent.scrape()
            now = {(name, key): value for name in counters for key, value in families[name].items()}
            for series in before.keys() & now.keys():
                self.assertGreaterEqual(now[series], before[series], series)
            before, seen = now, seen + bool(now)
        self.wait_for(lambda: any(one["foreload_learner_batches_total", ""] > 20 for one in agent.learners().values()),
                      "no learner was seen to go on")
        learner, = agent.learners().values()
        self.assertEqual(learner["process"], job.pid)
        self.assertGreater(learner["foreload_learner_step_seconds", ""], 0)
        prepared = sum(value for key, value in learner.items() if key[0] == "foreload_learner_prepared_samples_total")
        self.assertGreater(prepared, 100)

    def test_what_is_told_at_the_end_is_what_the_job_reports(self):
        agent = Agent(self)
        # The last step of the job takes a second, in which there is time to look.
        job = self.job("--epochs", 1, "--accelerator", IMAGES // 4, batch=IMAGES // 4)
        told = {}

        def is_complete():
            for learner in agent.learners().values():
                told.update(learner)
            return told.get(("foreload_learner_batches_total", "")) == 4

        self.wait_for(is_complete, f"the last batch was not seen: {told}")
        epoch, = self.done(job)["epochs"]
        self.assertEqual(told["foreload_learner_samples_total", ""], epoch["samples"])
        for tier in ("memory", "disk", "source"):
            self.assertEqual(told["foreload_learner_bytes_total", tier], epoch["bytes"][tier], tier)
        self.assertEqual(told["foreload_learner_bad_samples_total", "replaced"], epoch["replaced"])
        for cause in ("fetch", "prep"):
            self.assertAlmostEqual(told["foreload_learner_stall_seconds_total", cause],
                                   epoch["stall"][cause] * epoch["seconds"], delta=0.001)

    def test_a_member_and_an_observer_see_the_same(self):
        agent = Agent(self, "--workers", 1)
        job = self.job("--epochs", 1000, "--accelerator", 400)
        self.wait_for(lambda: any(one["foreload_learner_batches_total", ""] > 5 for one in agent.learners().values()),
                      "no learner")
        job.send_signal(signal.SIGSTOP)  # so that nothing changes between the two looks
        self.wait_for(lambda: pathlib.Path(f"/proc/{job.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T", "not stopped")
        looks = []

        def nothing_changes():  # the agent may have something at hand
            looks[:] = agent.learners(), self.observed(), agent.learners()
            return looks[0] == looks[2]

        self.wait_for(nothing_changes, f"the learner is stopped, and {looks}")
        learner, = looks[0].values()
        shown = looks[1]
        one, = shown["learners"]
        self.assertEqual(learner["foreload_learner_batches_total", ""], one["batches"])
        self.assertEqual(learner["foreload_learner_samples_total", ""], one["samples"])
        self.assertEqual(learner["foreload_learner_queue_batches", ""], one["published"])
        self.assertEqual(learner["foreload_learner_queue_slots", ""], one["slots"])
        self.assertEqual(learner["foreload_learner_bytes_total", "memory"], one["bytes"]["memory"])
        for helper in one["prepared_by"]:
            self.assertEqual(learner["foreload_learner_prepared_samples_total", str(helper["process"])], helper["samples"])
        families, _ = agent.scrape()
        host = (("host", self.host),)
        self.assertEqual(families["foreload_host_members"][host], 2)
        self.assertEqual(families["foreload_host_cores"][host], shown["cores"])
        self.assertEqual(families["foreload_host_memory_budget_bytes"][host], 1 << 30)
        self.assertEqual(families["foreload_host_memory_bytes"][(*host, ("purpose", "arenas"))],
                         sum(arena["reserved_bytes"] for arena in shown["arenas"]))
        self.assertEqual(families["foreload_host_memory_bytes"][(*host, ("purpose", "members"))],
                         sum(member["reserved_bytes"] for member in shown["members"]))

    def test_an_agent_that_is_scraped_stays_alive_and_keeps_no_memory_of_jobs(self):
        agent = Agent(self)
        host = ("host", self.host)
        for _ in range(5):
            job = self.job("--epochs", 3)
            while job.poll() is None:
                agent.scrape()
            self.done(job)
            self.assertIn(agent.process.pid, [member["process"] for member in self.observed()["members"]])
        streams = (host, ("purpose", "streams"))
        self.wait_for(lambda: agent.scrape()[0]["foreload_host_memory_bytes"][streams] == 0, "memory of a job is kept")
        self.assertEqual(agent.learners(), {})

    def test_other_requests_are_refused(self):
        agent = Agent(self)
        answer, text = agent.ask("/healthz")
        self.assertEqual((answer.status, text), (200, "ok\n"))
        self.assertEqual(agent.ask("/")[0].status, 404)
        self.assertEqual(agent.ask("/metrics", "POST")[0].status, 405)
        host, port = agent.address.split(":")
        for bytes_sent in (b"", b"\0" * 100_000, b"GET /metrics HTTP/1.1\r\n" + b"x: y\r\n" * 10_000, os.urandom(50_000)):
            with socket.create_connection((host, int(port)), timeout=30) as connection:
                try:
                    connection.sendall(bytes_sent)
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(65536):
                        pass
                except ConnectionError:
                    pass
        self.assertEqual(agent.ask("/healthz")[0].status, 200)

    def test_one_object_is_printed_when_it_serves_and_nothing_later(self):
        agent = Agent(self)
        self.assertEqual((agent.report["command"], agent.report["host"], agent.report["made"]), ("agent", self.host, True))
        self.assertTrue(agent.address.startswith("127.0.0.1:"), agent.address)
        agent.process.send_signal(signal.SIGINT)
        out, err = agent.process.communicate(timeout=60)
        self.assertEqual((agent.process.returncode, out), (130, ""))
        self.assertEqual(err, "foreload: stopped by a signal\n")

    def test_people_are_told_the_address(self):
        agent = self.start("agent", "--host", self.host, "--memory", "1GiB", "--metrics", 0)
        self.assertIn(self.host, agent.stdout.readline())
        self.assertRegex(agent.stdout.readline(), r"^metrics: http://127\.0\.0\.1:\d+/metrics$")

    def test_an_address_beyond_loopback_is_warned_about_and_loopback_is_not(self):
        for metrics, warned in (("0.0.0.0:0", True), ("127.0.0.1:0", False)):
            agent = Agent(self, metrics=metrics)
            agent.process.terminate()
            _, err = agent.process.communicate(timeout=60)
            self.assertEqual("warning: metrics can be read by whoever reaches 0.0.0.0:" in err, warned, err)

    def test_bad_addresses_are_refused_before_the_host_is_joined(self):
        for address in (":9464", "65536", "-1", "9464x", "::1:9464", "[::1]", "127.0.0.1", "[127.0.0.1]:1"):
            done = self.foreload("agent", "--host", self.host, "--metrics=" + address)
            self.assert_fails(done, address, "HOST:PORT", codes=(2,))
        self.assert_fails(self.foreload("agent", "--host", self.host, "--metrics", "1", "--status"), "--metrics", codes=(2,))
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            done = self.foreload("agent", "--host", self.host, "--memory", "1GiB", "--metrics", address)
            self.assert_fails(done, address, "another port", codes=(1,))
        self.assert_fails(self.foreload("agent", "--host", self.host, "--status"), "there is no host", codes=(1,))

    def test_an_agent_that_is_told_to_end_leaves_the_job_as_it_was(self):
        chance = seeded("drain")
        epochs = 4 * amount(20)
        alone = self.report("run", self.data, "--batch", 8, "--seed", 3, "--hash", "--epochs", epochs)
        job = self.job("--epochs", epochs, "--accelerator", 600, "--workers", 1)
        self.wait_for(lambda: self.foreload("agent", "--host", self.host, "--status").returncode == 0, "there is no host")
        for _ in range(amount(20)):
            agent = Agent(self)
            time.sleep(chance.uniform(0, 0.3))
            number = chance.choice((signal.SIGTERM, signal.SIGINT))
            agent.process.send_signal(number)
            _, err = agent.process.communicate(timeout=30)
            self.assertEqual(agent.process.returncode, program.stop_code(number), err)
            host, port = agent.address.split(":")
            with self.assertRaises(ConnectionRefusedError):
                socket.create_connection((host, int(port)), timeout=5)
            status = self.foreload("agent", "--host", self.host, "--status", "--json")
            if status.returncode == 0:  # otherwise the job has ended, and the host with it
                self.assertEqual([member["process"] for member in json.loads(status.out)["members"]], [job.pid])
        for mine, expected in zip(self.done(job)["epochs"], alone["epochs"], strict=True):
            self.assertEqual((mine["order_hash"], mine["content_hash"]), (expected["order_hash"], expected["content_hash"]))

    def test_the_dashboard_shows_what_an_agent_tells(self):
        dashboard = json.loads(DASHBOARD.read_text())
        agent = Agent(self)
        self.job("--epochs", 1000, "--accelerator", 400)
        self.wait_for(agent.learners, "no learner")
        self.wait_for(lambda: agent.scrape()[0]["foreload_learner_prepared_samples_total"], "nobody prepares")
        families, counters = agent.scrape()
        variables = {one["name"]: one for one in dashboard["templating"]["list"]}
        self.assertEqual(variables["datasource"]["query"], "prometheus")
        panels = [panel for panel in dashboard["panels"] if panel["type"] != "row"]
        self.assertEqual(len({panel["id"] for panel in panels}), len(panels))
        expressions = [target["expr"] for panel in panels for target in panel["targets"]]
        used = set()
        for text in (*expressions, variables["host"]["query"]["query"]):
            names = set(re.findall(r"\bforeload_\w+", text))
            self.assertTrue(names, text)
            used |= names
            for name in names:
                self.assertTrue(families.get(name), f"{name} in {text} is told by no agent")
                labels = {label for key in families[name] for label, _ in key} | {"instance"}  # which Prometheus adds
                for group in re.findall(r"by \(([^)]*)\)", text):
                    self.assertLessEqual({label.strip() for label in group.split(",")}, labels, text)
                self.assertEqual(bool(re.search(rf"rate\({name}\b", text)), name in counters, text)
        for text in expressions:
            self.assertIn('host=~"$host"', text)
            self.assertEqual(text.count("("), text.count(")"), text)
        for panel in panels:
            self.assertEqual(panel["datasource"]["uid"], "${datasource}", panel["title"])
            for target in panel["targets"]:
                for label in re.findall(r"{{(\w+)}}", target["legendFormat"]):
                    self.assertIn(label, target["expr"], f"{panel['title']}: a legend of what was summed away")
        self.assertEqual(set(families) - used - {"foreload_learner_stall_ratio", "foreload_member_memory_bytes"}, set())


if __name__ == "__main__":
    program.main()
