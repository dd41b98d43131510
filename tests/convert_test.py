#!/usr/bin/python3
"""foreload convert: the same samples, whatever the form, the threads and the interruptions; SRC is never touched.

    tests/convert_test.py FORELOAD [unittest arguments]
"""
import hashlib
import io
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import tarfile
import time

import ledger
import program
from program import INDEX_FILE, ProgramTest, RefusalTest, amount, seeded, stop_code, wait_until

IMAGE_CHAIN = "random_resized_crop(32), random_flip, normalize"


def files_of(folder):
    """{name: hash} of everything in a converted folder but the index, which holds times."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
            for path in folder.iterdir() if not INDEX_FILE.fullmatch(path.name)}


def members_of(folder):
    """[(name, bytes)] over all shards, by Python's tarfile."""
    found = []
    for shard in sorted(folder.glob("shard-*.tar")):
        with tarfile.open(shard) as archive:
            for member in archive:
                assert (member.uid, member.gid, member.mtime, member.mode) == (0, 0, 0, 0o644), member.name
                found.append((member.name, archive.extractfile(member).read()))
    return found


class ConvertTest(ProgramTest):
    def convert(self, source, name="out", *arguments, **options):
        return self.report("convert", source, self.top / name, *arguments, **options)

    def content(self, place, *arguments):
        report = self.report("run", place, "--batch", 7, "--seed", 5, "--hash", *arguments)
        return [(epoch["order_hash"], epoch["content_hash"]) for epoch in report["epochs"]]

    def sizes(self, folder):
        return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in [folder, *folder.rglob("*")]}


class ImageTest(ConvertTest):
    def setUp(self):
        super().setUp()
        self.folder = self.images(count=40)
        self.before = self.sizes(self.folder)

    def test_the_same_content_hash_from_every_form(self):
        report = self.convert(self.folder, "out", "--shard-size", "1MB")
        self.assertEqual(self.sizes(self.folder), self.before, "SRC was touched")
        self.assertEqual(report["samples"], 40)
        self.assertEqual(report["outcomes"]["rewritten"], 40, report["outcomes"])
        self.assertGreater(report["destination"]["shards"], 2)
        expected = self.content(self.folder, "--chain", IMAGE_CHAIN)
        self.assertEqual(self.content(self.top / "out", "--chain", IMAGE_CHAIN), expected)
        self.assertEqual(self.content(self.top / "out" / "shard-*.tar", "--chain", IMAGE_CHAIN), expected)
        self.convert(self.top / "out" / "shard-*.tar", "again", "--keep-original")
        self.assertEqual(self.content(self.top / "again", "--chain", IMAGE_CHAIN), expected)
        self.convert(f"records:{self.top / 'out'}", "third")
        self.assertEqual(self.content(self.top / "third", "--chain", IMAGE_CHAIN), expected)

    def test_members_and_pixels_are_the_same_for_tarfile_and_pillow(self):
        try:
            from PIL import Image
        except ImportError:
            self.skipTest("no Pillow here")
        self.convert(self.folder, "out", "--shard-size", "2MB")
        images = [(name, data) for name, data in members_of(self.top / "out") if name.endswith(".jpg")]
        labels = [(name, data) for name, data in members_of(self.top / "out") if name.endswith(".cls")]
        originals = sorted(path for path in self.folder.rglob("*.jpg"))
        classes = sorted({path.parent.name for path in originals})
        self.assertEqual([name for name, _ in images], [str(path.relative_to(self.folder)) for path in originals])
        self.assertEqual([int(data) for _, data in labels], [classes.index(path.parent.name) for path in originals])
        for (name, data), path in zip(images, originals):
            with Image.open(io.BytesIO(data)) as written, Image.open(path) as original:
                self.assertEqual(written.convert("RGB").tobytes(), original.convert("RGB").tobytes(), name)

    def test_the_index_is_there_with_dimensions_and_classes(self):
        self.convert(self.folder)
        index = next(path for path in (self.top / "out").iterdir() if INDEX_FILE.fullmatch(path.name))
        before = index.stat().st_mtime_ns
        report = self.report("index", self.top / "out")
        self.assertEqual(report["dimensions"]["known"], 40)
        self.assertEqual(len(report["classes"]), 4)
        self.assertEqual(index.stat().st_mtime_ns, before)
        original = self.report("index", self.folder, "--dimensions")
        for field in ("width", "height", "pixels"):
            self.assertEqual(report["dimensions"][field], original["dimensions"][field])

    def test_threads_do_not_change_a_byte(self):
        outputs = []
        for threads in (1, 2, 5):
            self.convert(self.folder, f"out{threads}", "--shard-size", "1MB", "--threads", threads)
            outputs.append(files_of(self.top / f"out{threads}"))
        self.assertEqual(outputs[0], outputs[1])
        self.assertEqual(outputs[0], outputs[2])

    def test_killed_between_images_it_ends_as_if_undisturbed(self):
        chance = seeded("killed_images")
        began = time.monotonic()
        self.convert(self.folder, "whole", "--shard-size", "500kB")
        seconds = time.monotonic() - began
        for turn in range(20 if program.SOAK else 2):
            process = self.start("convert", self.folder, self.top / "out", "--shard-size", "500kB")
            time.sleep(chance.random() * seconds)
            process.kill()
            process.communicate()
            self.convert(self.folder, "out", "--shard-size", "500kB", "--threads", chance.choice((1, 3)))
            self.assertEqual(files_of(self.top / "out"), files_of(self.top / "whole"))
            shutil.rmtree(self.top / "out")

    def test_shuffling_follows_the_seed(self):
        self.convert(self.folder, "plain", "--keep-original")
        self.convert(self.folder, "seven", "--keep-original", "--shuffle", 7)
        self.convert(self.folder, "again", "--keep-original", "--shuffle", 7, "--threads", 1)
        self.convert(self.folder, "eight", "--keep-original", "--shuffle", 8)
        plain, seven, eight = (members_of(self.top / name) for name in ("plain", "seven", "eight"))
        self.assertEqual(files_of(self.top / "seven"), files_of(self.top / "again"))
        self.assertNotEqual([name for name, _ in plain], [name for name, _ in seven])
        self.assertNotEqual([name for name, _ in eight], [name for name, _ in seven])
        self.assertEqual(sorted(plain), sorted(seven))
        # The order is the one in which `run` would deliver the first epoch with that seed.
        lines, _ = self.logged(self.folder, "--batch", 40, "--seed", 7, "--chain", IMAGE_CHAIN)
        names = [name for name, _ in plain if name.endswith(".jpg")]
        self.assertEqual([name for name, _ in seven if name.endswith(".jpg")], [names[i] for i in lines[0]["ids"]])

    def test_shrinking_is_done_only_when_asked_and_told(self):
        report = self.convert(self.folder, "small", "--max-side", 200, "--quality", 80)
        self.assertEqual(report["lossy"], {"max_side": 200, "quality": 80})
        known = self.report("index", self.top / "small")["dimensions"]
        self.assertEqual(known["known"], 40)
        self.assertLessEqual(max(known["width"]["max"], known["height"]["max"]), 200)
        self.assertGreater(report["outcomes"]["shrunk"], 30)
        self.assertLess(report["destination"]["bytes"], report["source"]["bytes"] / 2)
        self.content(self.top / "small", "--chain", IMAGE_CHAIN)

    def test_bad_samples_end_it_or_are_kept_as_they_are(self):
        victims = sorted(self.folder.rglob("*.jpg"))[3:5]
        victims[0].write_bytes(b"")
        victims[1].write_bytes(b"\xff\xd8\xff no picture at all")
        done = self.foreload("convert", self.folder, self.top / "out")
        self.assert_fails(done, victims[0].name, self.folder, "empty", "keep", codes=(1,))
        report = self.convert(self.folder, "kept", "--on-error", "keep")
        self.assertEqual([bad["key"] for bad in report["bad"]],
                         [str(path.relative_to(self.folder)) for path in victims])
        self.assertEqual(report["outcomes"], {"rewritten": 38, "shrunk": 0, "copied": 0, "damaged": 0, "bad": 2})
        replace = ("--chain", IMAGE_CHAIN, "--on-error", "replace")
        self.assertEqual(self.content(self.top / "kept", *replace), self.content(self.folder, *replace))
        listed = json.loads((self.top / "kept" / "convert.json").read_text())["bad"]
        self.assertEqual([bad["key"] for bad in listed], [bad["key"] for bad in report["bad"]])

    def test_damaged_images_load_as_they_did_before(self):
        chance = seeded("damaged")
        victims = chance.sample(sorted(self.folder.rglob("*.jpg")), 12)
        for turn, path in enumerate(victims):
            data = bytearray(path.read_bytes())
            place = chance.randrange(700, len(data) - 700)
            if turn % 3 == 0:
                del data[place:]
            elif turn % 3 == 1:
                data[place:place + 2] = b"\xff\xd5"
            else:
                for _ in range(5):
                    data[chance.randrange(700, len(data))] ^= 1 << chance.randrange(8)
            path.write_bytes(data)
        report = self.convert(self.folder, "out", "--on-error", "keep")
        self.assertGreaterEqual(report["outcomes"]["damaged"] + report["outcomes"]["bad"], 4, report["outcomes"])
        replace = ("--chain", IMAGE_CHAIN, "--on-error", "replace")
        self.assertEqual(self.content(self.top / "out", *replace), self.content(self.folder, *replace))

    def test_broken_pngs_and_webps_are_found(self):
        try:
            from PIL import Image
        except ImportError:
            self.skipTest("no Pillow here")
        folder = self.top / "kinds" / "class"
        folder.mkdir(parents=True)
        with Image.open(sorted(self.folder.rglob("*.jpg"))[0]) as picture:
            for name in ("good.png", "good.webp", "short.png", "short.webp"):
                picture.convert("RGB").save(folder / name)
        for name in ("short.png", "short.webp"):
            os.truncate(folder / name, (folder / name).stat().st_size // 2)
        for flags in ((), ("--keep-original",)):
            done = self.foreload("convert", folder.parent, self.top / "out", *flags)
            self.assert_fails(done, "short.png", "--on-error keep", codes=(1,))
            shutil.rmtree(self.top / "out")
            report = self.convert(folder.parent, "kept", "--on-error", "keep", *flags)
            self.assertEqual([bad["key"] for bad in report["bad"]], ["class/short.png", "class/short.webp"])
            self.assertEqual((report["outcomes"]["copied"], report["outcomes"]["bad"]), (2, 2))
            shutil.rmtree(self.top / "kept")

    def test_other_kinds_are_copied_and_counted(self):
        png = subprocess.run(["/usr/bin/python3", "-c", "import sys; from PIL import Image; "
                              "Image.new('RGB', (30, 20), (1, 2, 3)).save(sys.stdout.buffer, 'png')"],
                             capture_output=True)
        if png.returncode != 0:
            self.skipTest("no Pillow here")
        (self.folder / "class_00001" / "x.png").write_bytes(png.stdout)
        jpeg = sorted(self.folder.rglob("*.jpg"))[0].read_bytes()
        (self.folder / "class_00001" / "array.bin").write_bytes(jpeg)  # by its name no picture
        report = self.convert(self.folder)
        self.assertEqual((report["outcomes"]["rewritten"], report["outcomes"]["copied"]), (40, 2))
        members = dict(members_of(self.top / "out"))
        self.assertEqual(members["class_00001/x.png"], png.stdout)
        self.assertEqual(members["class_00001/array.bin"], jpeg)


class LabelTest(ConvertTest):
    """Samples without pictures, so that they can be judged byte by byte."""

    def judge(self, place, labels, count=30):
        lines, report = self.logged(place, "--batch", 8, "--chain", ledger.chain())
        self.assertEqual(report["dataset"]["samples"], count)
        samples = [(ledger.sample(i), labels[i]) for i in range(count)]
        self.assertEqual(ledger.judge_lines(lines, samples), "")

    def tar(self, name, members):
        with tarfile.open(self.top / name, "w") as archive:
            for member, data in members:
                entry = tarfile.TarInfo(member)
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
        return self.top / name

    def test_class_folders(self):
        self.convert(self.ledger("set", 30), "out", "--shard-size", "10kB")
        self.judge(self.top / "out", [ledger.label(i, 30) for i in range(30)])
        self.assertEqual(self.report("index", self.top / "out")["dataset"]["fingerprint"],
                         self.report("index", self.top / "set")["dataset"]["fingerprint"])

    def test_a_flat_folder_has_no_labels(self):
        (self.top / "flat").mkdir()
        for i in range(30):
            (self.top / "flat" / f"{i:03}.bin").write_bytes(ledger.sample(i))
        self.convert(self.top / "flat")
        self.judge(self.top / "out", [-1] * 30)

    def test_json_and_cls_members(self):
        members = []
        for i in range(30):
            members.append((f"k{i:02}.bin", ledger.sample(i)))
            members.append((f"k{i:02}.json", json.dumps({"meta": {"target": 100 - i}}).encode()) if i % 2 else
                           (f"k{i:02}.cls", b"%d" % (100 - i)))
        source = self.tar("source.tar", members)
        self.convert(source, "out", "--label-field", "meta.target", "--shard-size", "9kB")
        self.judge(self.top / "out", [100 - i for i in range(30)])

    def test_a_tar_of_class_folders(self):
        self.ledger("set", 30)
        subprocess.run(["tar", "-C", self.top / "set", "-cf", self.top / "set.tar", "."], check=True)
        self.convert(self.top / "set.tar")
        self.judge(self.top / "out", [ledger.label(i, 30) for i in range(30)])

    def test_the_same_key_twice_and_stems_that_collide(self):
        names = ["./a/x.bin", "./a/x.bin", "./a/x.npy", "./a/x.v2.bin", "./a/x~1.bin", "./a/y.bin", "./b/x.bin"]
        source = self.tar("source.tar", [(name, ledger.sample(i)) for i, name in enumerate(names)])
        listed = self.report("index", source)
        self.assertEqual(listed["dataset"]["samples"], 7)
        self.convert(source)
        payloads = [data for name, data in members_of(self.top / "out") if not name.endswith(".cls")]
        stems = [name.rsplit("/", 1)[1].split(".", 1)[0] for name, _ in members_of(self.top / "out")]
        self.assertEqual(sorted(payloads), sorted(ledger.sample(i) for i in range(7)))
        groups = stems[::2]
        self.assertEqual(groups, stems[1::2], "a label member stands before its sample")
        self.assertTrue(all(a != b for a, b in zip(groups[:6], groups[1:6])), groups)
        self.assertEqual(self.report("index", self.top / "out")["dataset"]["samples"], 7)
        self.judge_same(source, self.top / "out")

    def test_equal_stems_that_are_no_neighbours_stay_apart(self):
        members = []
        for i in range(30):
            members += [(f"a/{i % 3}/x.bin", ledger.sample(i)), (f"a/{i % 3}/x.cls", b"%d" % (100 + i))]
        source = self.tar("source.tar", members)
        for name, flags in (("out", ()), ("shuffled", ("--shuffle", 3)), ("again", ("--shuffle", 3, "--threads", 1))):
            self.convert(source, name, *flags)
            written = members_of(self.top / name)
            self.assertEqual(len({member for member, _ in written}), 60, "every name once")
            lines, _ = self.logged(self.top / name, "--batch", 8, "--chain", ledger.chain())
            labels = dict(zip((data for member, data in written if not member.endswith(".cls")),
                              (int(data) for member, data in written if member.endswith(".cls"))))
            self.assertEqual(labels, {ledger.sample(i): 100 + i for i in range(30)})
            order = [data for member, data in written if not member.endswith(".cls")]
            self.assertEqual(ledger.judge_lines(lines, [(data, labels[data]) for data in order]), "")
        self.assertEqual(files_of(self.top / "shuffled"), files_of(self.top / "again"))

    def judge_same(self, first, second):
        chain = ("--chain", ledger.chain())
        self.assertEqual(self.content(first, *chain), self.content(second, *chain))

    def test_long_and_foreign_names(self):
        folder = self.top / "set" / ("d" * 120) / "größe-日本"
        folder.mkdir(parents=True)
        names = ["ü" * 100, "x" * 250, "blank and 'quote'", "new\nline", "-dash", "*", "bytes-\udcff"]
        for i, name in enumerate(names):
            (folder / f"{name}.bin").write_bytes(ledger.sample(i))
        self.convert(self.top / "set")
        self.judge_same(self.top / "set", self.top / "out")
        written = {os.fsencode(name) for name, _ in members_of(self.top / "out") if name.endswith(".bin")}
        self.assertEqual(written, {os.fsencode(path.relative_to(self.top / "set")) for path in folder.iterdir()})
        listed = subprocess.run(["tar", "--quoting-style=literal", "-tf", self.top / "out" / "shard-000000.tar"],
                                capture_output=True, check=True).stdout
        self.assertIn(("x" * 250 + ".bin").encode(), listed)

    def test_names_that_lead_elsewhere_never_leave_the_folder(self):
        names = ["../../evil.bin", "/abs/a.bin", "a/../../b.bin", "ok/c.bin"]
        source = self.tar("source.tar", [(name, ledger.sample(i)) for i, name in enumerate(names)])
        before = set(self.top.rglob("*"))
        self.convert(source)
        for name, _ in members_of(self.top / "out"):
            self.assertFalse(name.startswith("/") or ".." in name.split("/"), name)
        new = {path for path in set(self.top.rglob("*")) - before if self.top / "out" not in [path, *path.parents]}
        self.assertEqual({path for path in new if "home" not in path.parts}, set())

    def test_an_empty_sample_among_arrays_is_bad(self):
        folder = self.ledger("set", 10)
        (folder / "c0" / "empty.bin").write_bytes(b"")
        self.assert_fails(self.foreload("convert", folder, self.top / "out"), "empty.bin", "it is empty", codes=(1,))
        self.assertEqual(self.convert(folder, "kept", "--on-error", "keep")["outcomes"]["bad"], 1)
        self.assertEqual(self.report("index", self.top / "kept")["dataset"]["samples"], 11)

    def test_a_subset(self):
        self.convert(self.ledger("set", 30), "out", "--subset", "3,1,2")
        payloads = [data for name, data in members_of(self.top / "out") if name.endswith(".bin")]
        self.assertEqual(payloads, [ledger.sample(i) for i in (3, 1, 2)])


class ResumeTest(ConvertTest):
    def setUp(self):
        super().setUp()
        self.folder = self.ledger("set", 400, 40000)
        self.arguments = ["--shard-size", "1300kB"]
        began = time.monotonic()
        self.convert(self.folder, "whole", *self.arguments)
        self.seconds = time.monotonic() - began
        self.whole = files_of(self.top / "whole")
        self.assertEqual(len([name for name in self.whole if name.endswith(".tar")]), 14)

    def assert_finishes(self, *arguments, **options):
        report = self.convert(self.folder, "out", *self.arguments, *arguments, **options)
        self.assertEqual(files_of(self.top / "out"), self.whole)
        return report

    def test_killed_at_any_moment_it_ends_as_if_undisturbed(self):
        chance = seeded("killed")
        kept = 0
        for turn in range(amount(50)):
            shutil.rmtree(self.top / "out", ignore_errors=True)
            for _ in range(chance.choice((1, 1, 2, 3))):
                process = self.start("convert", self.folder, self.top / "out", *self.arguments,
                                     "--threads", chance.choice((1, 2, 3)))
                time.sleep(chance.random() * self.seconds)
                process.kill()
                process.communicate()
                if (self.top / "out" / ".foreload-convert").exists():
                    done = self.foreload("run", self.top / "out", "--chain", ledger.chain(40000))
                    if not (self.top / "out" / "convert.json").exists():
                        self.assert_fails(done, "not finished")
            report = self.assert_finishes("--threads", chance.choice((1, 2, 5)))
            kept += report["made"] < 400
        print(f"killed: {kept} of {amount(50)} conversions kept finished shards")

    def test_finished_shards_are_kept(self):
        process = self.start("convert", self.folder, self.top / "out", *self.arguments)
        wait_until(lambda: len(list((self.top / "out").glob("shard-*.tar"))) >= 3 or process.poll() is not None)
        process.kill()
        process.communicate()
        stamps = {path: path.stat().st_mtime_ns for path in (self.top / "out").glob("shard-*.tar")}
        report = self.assert_finishes()
        self.assertLess(report["made"], 400)
        self.assertEqual({path: path.stat().st_mtime_ns for path in stamps}, stamps)

    def test_a_shard_that_lost_its_end_is_made_again(self):
        process = self.start("convert", self.folder, self.top / "out", *self.arguments)
        wait_until(lambda: len(list((self.top / "out").glob("shard-*.tar"))) >= 2 or process.poll() is not None)
        process.kill()
        process.communicate()
        if (self.top / "out" / "convert.json").exists():
            self.skipTest("it was too fast to be interrupted")
        with open(self.top / "out" / "shard-000000.tar", "r+b") as shard:
            shard.truncate(100000)
        self.assert_finishes()

    def stopped_by(self, number):
        """Standard output of a conversion that was stopped by a signal; one that was faster than it is tried again."""
        for _ in range(10):
            shutil.rmtree(self.top / "out", ignore_errors=True)
            process = self.start("convert", self.folder, self.top / "out", *self.arguments, "--json")
            wait_until(lambda: (self.top / "out" / ".foreload-convert").exists())
            sent = time.monotonic()
            process.send_signal(number)
            out, _ = process.communicate(timeout=program.DEADLINE)
            self.assertLess(time.monotonic() - sent, 5)
            if process.returncode != 0:
                self.assertEqual(process.returncode, stop_code(number))
                return out
        self.fail("it is always faster than the signal")

    def test_signals_end_it_soon_and_it_goes_on(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            self.assertEqual(json.loads(self.stopped_by(number))["error"]["code"], "Cancelled")
            self.assert_finishes()

    def test_again_does_nothing(self):
        before = self.sizes(self.top / "whole")
        report = self.convert(self.folder, "whole", *self.arguments)
        self.assertEqual((report["made"], report["samples"], report["outcomes"]["copied"]), (0, 400, 400))
        self.assertEqual(self.sizes(self.top / "whole"), before)

    def test_two_at_once_do_not_write_to_one_folder(self):
        first = self.start("convert", self.folder, self.top / "out", *self.arguments)
        wait_until(lambda: (self.top / "out" / ".foreload-convert" / "state.json").exists())
        first.send_signal(signal.SIGSTOP)
        try:
            if not (self.top / "out" / "convert.json").exists():
                self.assert_fails(self.foreload("convert", self.folder, self.top / "out", *self.arguments), "another process")
        finally:
            first.send_signal(signal.SIGCONT)
        first.communicate(timeout=program.DEADLINE)
        self.assertEqual(files_of(self.top / "out"), self.whole)

    def test_a_full_disk_is_told_and_the_rest_is_made_later(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 19, resource.RLIM_INFINITY))

        done = self.foreload("convert", self.folder, self.top / "out", *self.arguments, preexec_fn=limit)
        self.assert_fails(done, "cannot write", "shard-000000.tar", "continues", codes=(1,))
        self.assertEqual(list((self.top / "out").glob("*.tar")), [])
        self.assert_fails(self.foreload("run", self.top / "out"), "not finished")
        self.assert_finishes()

    def test_a_full_file_system(self):
        if os.geteuid() != 0:
            self.skipTest("only root can mount")
        place = self.top / "small"
        place.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "none", place], capture_output=True).returncode != 0:
            self.skipTest("no mounting here")
        try:
            done = self.foreload("convert", self.folder, place / "out", *self.arguments)
            self.assert_fails(done, "No space left", "continues", codes=(1,))
            self.assertFalse((place / "out" / "convert.json").exists())
            kept = len(list((place / "out").glob("shard-*.tar")))
            self.assertGreaterEqual(kept, 1)
            subprocess.run(["mount", "-o", "remount,size=200m", place], check=True)
            report = self.report("convert", self.folder, place / "out", *self.arguments)
            self.assertEqual(files_of(place / "out"), self.whole)
            self.assertLess(report["made"], 400)
        finally:
            subprocess.run(["umount", place], check=True)


class RefusedTest(RefusalTest):
    def setUp(self):
        super().setUp()
        self.folder = self.ledger("set", 20)

    def test_places(self):
        (self.top / "full").mkdir()
        (self.top / "full" / "mine.txt").write_text("mine")
        self.refused("convert", self.folder, self.top / "full", words=("not empty", "mine.txt"))
        self.refused("convert", self.folder, self.folder, words=("inside",))
        self.refused("convert", self.folder, self.folder / "new", words=("inside", self.folder))
        self.refused("convert", self.folder / "c0", self.folder, words=("inside",))
        os.symlink(self.folder, self.top / "link")
        self.refused("convert", self.folder, self.top / "link" / "c9" / "new", words=("inside",))
        self.refused("convert", self.top / "link", self.folder / "new", words=("inside",))
        (self.top / "file").write_text("")
        self.refused("convert", self.folder, self.top / "file", words=("not a folder",))
        self.refused("convert", self.folder, self.top / "file" / "below", words=("file",))
        self.refused("convert", self.top / "missing", self.top / "new", words=("missing",))
        (self.top / "closed").mkdir(mode=0o555)
        self.refused("convert", self.folder, self.top / "closed", words=("read-only",))
        (self.top / "nothing").mkdir()
        self.refused("convert", self.top / "nothing", self.top / "new", words=("no samples",))

    def test_tars_beside_the_destination_are_fine_but_not_inside(self):
        subprocess.run(["tar", "-C", self.folder, "-cf", self.top / "set.tar", "."], check=True)
        self.refused("convert", self.top / "set.tar", self.top, words=("inside",))
        self.refused("convert", self.top / "s*.tar", self.top, words=("inside",))
        self.report("convert", self.top / "set.tar", self.top / "new")

    def test_options(self):
        for flags, word in ((("--shard-size", 0), "256MiB"), (("--shard-size", "many"), "many"),
                            (("--quality", 0), "--quality"), (("--quality", 101), "--quality"),
                            (("--max-side", 0), "--max-side"), (("--max-side", -5), "--max-side"),
                            (("--max-side", 100, "--keep-original"), "exclude"), (("--on-error", "skip"), "keep"),
                            (("--threads", 10**6), "--threads"), (("--shuffle", "x"), "--shuffle")):
            self.refused("convert", self.folder, self.top / "new", *flags, words=(word,), codes=(2,))

    def test_other_options_and_other_sources(self):
        self.report("convert", self.folder, self.top / "out")
        self.refused("convert", self.folder, self.top / "out", "--shuffle", 3, words=("other options",))
        self.refused("convert", self.ledger("more", 21), self.top / "out", words=("another source",))
        self.report("convert", self.folder, self.top / "out")

    def test_a_source_that_changes(self):
        self.report("index", self.folder)
        victim = self.folder / ledger.name(13, 20)
        victim.write_bytes(b"other")  # in place, so that the index does not see it
        arguments = ("convert", self.folder, self.top / "out", "--shard-size", "10kB")
        for _ in range(2):
            self.assert_fails(self.foreload(*arguments), victim.name, "changed", "rebuild", codes=(1,))
        self.assertFalse((self.top / "out" / "convert.json").exists())
        self.report("index", self.folder, "--rebuild")
        self.assert_fails(self.foreload(*arguments), "another source")
        victim.unlink()
        self.assert_fails(self.foreload(*arguments), "another source")

    def test_an_unreadable_sample(self):
        os.chmod(self.folder / ledger.name(7, 20), 0)
        if os.geteuid() == 0:
            done = self.foreload_as(12345, "convert", self.folder, self.top / "out")
        else:
            done = self.foreload("convert", self.folder, self.top / "out")
        self.assert_fails(done, "000007.bin", "can not be read", codes=(1,))

    def test_a_folder_with_a_shard_missing_is_refused(self):
        self.report("convert", self.folder, self.top / "out", "--shard-size", "4kB")
        (self.top / "out" / "shard-000002.tar").unlink()
        self.refused("run", self.top / "out", "--chain", ledger.chain(), words=("shard-000002.tar",))


class HostilePlaceTest(RefusalTest):
    """What others have put into DST: it is not written, not removed, and not taken for ours."""

    def setUp(self):
        super().setUp()
        self.folder = self.ledger("set", 60, 4000)
        self.out = self.top / "out"
        self.work = self.out / ".foreload-convert"
        self.call = ("convert", self.folder, self.out, "--shard-size", "40kB")

    def interrupted(self):
        """A conversion with finished shards whose last one is missing."""
        self.report(*self.call)
        whole = files_of(self.out)
        shutil.rmtree(self.out)
        for _ in range(20):
            process = self.start(*self.call)
            wait_until(lambda: (self.out / "shard-000001.tar").exists() or process.poll() is not None)
            process.kill()
            process.communicate()
            if not (self.out / "convert.json").exists():
                return whole
            shutil.rmtree(self.out)
        self.skipTest("it was always too fast to be interrupted")

    def test_a_work_folder_that_is_a_link_is_refused(self):
        self.out.mkdir()
        (self.top / "elsewhere").mkdir()
        self.work.symlink_to(self.top / "elsewhere")
        self.refused(*self.call, words=(".foreload-convert", "link"))
        self.work.unlink()
        self.work.symlink_to(self.folder)
        self.refused(*self.call, words=(".foreload-convert", "link"))

    def test_a_work_folder_of_someone_else_is_refused(self):
        self.work.mkdir(parents=True)
        for name in ("mine.txt", "state.json", "shard-000000.tar"):
            (self.work / name).write_text("mine")
            self.refused(*self.call, words=("not begun by", name))
            (self.work / name).unlink()
        self.report(*self.call)
        self.assertFalse(self.work.exists())

    def test_files_of_others_stay_in_the_work_folder(self):
        self.interrupted()
        (self.work / "mine.txt").write_text("mine")
        self.report(*self.call)
        self.report(*self.call)
        self.assertEqual([path.name for path in self.work.iterdir()], ["mine.txt"])
        self.report("run", self.out, "--chain", ledger.chain(4000), "--batch", 8)

    def test_hard_links_to_the_source_keep_their_content(self):
        whole = self.interrupted()
        victims = sorted(path for path in self.folder.rglob("*.bin"))
        before = {path: path.read_bytes() for path in victims}
        names = [f"shard-{i:06}.tar{end}" for i in range(9) for end in ("", ".json", ".rows")]
        for victim, name in zip(victims, [*names, "convert.json", "shards.rows"]):
            (self.work / name).unlink(missing_ok=True)
            os.link(victim, self.work / name)
        self.report(*self.call)
        self.assertEqual({path: path.read_bytes() for path in victims}, before)
        self.assertEqual(files_of(self.out), whole)

    def test_a_half_written_state_is_written_again(self):
        self.interrupted()
        state = (self.work / "state.json").read_bytes()
        for length in (0, 1, len(state) - 1):
            shutil.rmtree(self.out)
            self.work.mkdir(parents=True)
            (self.work / "state.json").write_bytes(state[:length])
            self.report(*self.call)
            self.assertFalse(self.work.exists())

    def test_changed_shards_and_accounts_are_made_again(self):
        whole = self.interrupted()
        shard = self.out / "shard-000000.tar"
        data = bytearray(shard.read_bytes())
        data[5000] ^= 1
        shard.write_bytes(data)
        account = self.work / "shard-000001.tar.json"
        self.assertIn('"widths":[0', account.read_text())
        account.write_text(account.read_text().replace('"widths":[0', '"widths":[7'))
        self.report(*self.call)
        self.assertEqual(files_of(self.out), whole)

    def test_a_link_that_leads_nowhere(self):
        self.out.symlink_to(self.top / "nowhere")
        self.refused(*self.call, words=("link", "nowhere"))

    def test_a_removed_destination_keeps_nothing(self):
        process = self.start(*self.call[:3], "--shard-size", "1GB")
        wait_until(lambda: self.work.exists() or process.poll() is not None)
        process.send_signal(signal.SIGSTOP)
        shutil.rmtree(self.out)
        process.send_signal(signal.SIGCONT)
        _, err = process.communicate(timeout=program.DEADLINE)
        if process.returncode == 0:
            self.skipTest("it was faster")
        self.assertEqual(process.returncode, 1)
        self.assertNotIn("are kept", err)


class ChangedRecordsTest(RefusalTest):
    def setUp(self):
        super().setUp()
        self.folder = self.ledger("set", 60, 4000)
        self.out = self.top / "out"
        self.call = ("convert", self.folder, self.out, "--shard-size", "40kB")
        self.report(*self.call)
        self.manifest = self.out / "convert.json"
        self.good = self.manifest.read_text()

    def assert_refused(self, *words):
        """By whoever opens it, and by another conversion."""
        for call in (("run", self.out, "--chain", ledger.chain(4000)), ("index", self.out), self.call):
            self.assert_fails(self.foreload(*call), *words)

    def test_a_shard_of_another_length(self):
        shard = self.out / "shard-000001.tar"
        os.truncate(shard, shard.stat().st_size - 10240)
        self.assert_refused("shard-000001.tar", "was changed since it was converted", "new folder")

    def test_a_shard_of_the_same_length_with_other_samples(self):
        shutil.copyfile(self.out / "shard-000000.tar", self.out / "shard-000001.tar")
        self.assert_refused("was changed since it was converted", "60 samples", "new folder")

    def test_a_missing_shard_is_named(self):
        for name in ("shard-000000.tar", "shard-000002.tar"):
            (self.out / name).rename(self.top / "aside")
            self.assert_refused(name, "missing")
            (self.top / "aside").rename(self.out / name)
        self.report(*self.call)

    def test_damaged_manifests(self):
        good = json.loads(self.good)
        for change in ({"bad": [{"key": 5}]}, {"bad": 3}, {"samples": "60"}, {"samples": 59}, {"samples": -1},
                       {"outcomes": []}, {"shards": good["shards"][1:]}, {"shards": [5]}, {"classes": [[]]},
                       {"plan": None}, {"bytes": 1e300}):
            self.manifest.write_text(json.dumps({**good, **change}))
            self.assert_refused("convert.json", "damaged")
        deep = "[" * 100000 + "]" * 100000
        for text in ("", "{", "[]", "null", deep, self.good.replace('"plan": {', '"plan": {"x": ' + deep + ",", 1),
                     '{"plan":' * 100000):
            self.manifest.write_text(text)
            self.assert_refused("convert.json", "damaged")

    def test_a_manifest_that_does_not_fit(self):
        good = json.loads(self.good)
        shards = good["shards"]
        fewer = {"shards": shards[:-1], "samples": good["samples"] - shards[-1]["samples"]}
        for change in ({"fingerprint": "0" * 16}, fewer):
            self.manifest.write_text(json.dumps({**good, **change}))
            self.assert_refused("was changed since it was converted")

    def test_without_its_index_it_is_what_it_was(self):
        before = self.report("index", self.out)["dataset"]["fingerprint"]
        for path in self.out.iterdir():
            if INDEX_FILE.fullmatch(path.name):
                path.unlink()
        self.assertEqual(self.report("index", self.out)["dataset"]["fingerprint"], before)
        self.assertEqual(self.report(*self.call)["made"], 0)


class LittleMemoryTest(ConvertTest):
    def narrowed(self, limit, *arguments):
        def narrow():
            resource.setrlimit(resource.RLIMIT_AS, (limit << 20, limit << 20))

        return self.foreload(*arguments, preexec_fn=narrow)

    def test_too_little_memory_is_an_error(self):
        folder = self.images(count=40)
        # Below the first limit its libraries can not even be loaded.
        first = next(limit for limit in range(32, 512, 8) if self.narrowed(limit, "--version").returncode == 0)
        for limit in range(first, first + 160, 16):
            shutil.rmtree(self.top / "out", ignore_errors=True)
            done = self.narrowed(limit, "convert", folder, self.top / "out", "--threads", 3)
            if limit == first:
                self.assertNotEqual(done.returncode, 0, "it is too little for nothing")
            if done.returncode != 0:
                self.assert_fails(done, codes=(1,))


if __name__ == "__main__":
    program.main()
