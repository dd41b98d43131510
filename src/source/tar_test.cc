#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/machine.h"
#include "source/source_testing.h"
#include "source/tar_label.h"
#include "source/tar_shard.h"

namespace foreload {
namespace {

namespace fs = std::filesystem;

using Strings = std::vector<std::string>;
using Labels = std::vector<std::int64_t>;

TEST(TarTest, WebDatasetGroupsBecomeSamplesInArchiveOrder) {
  const TestFolder folder;
  folder.write("x.tar", tar_entry("b/2.jpg", "two") + tar_entry("b/2.cls", "7\n") + tar_entry("b/2.txt", "a caption") +
                            tar_entry("1.cls", " 3") + tar_entry("1.seg.png", "mask") + tar_entry("1.jpg", "one") +
                            tar_entry("./v.1/k.json", R"({"label": 12, "x": [1, {}]})") + tar_entry("./v.1/k.npy", "") +
                            tar_end());
  const Opening opening = open_at(folder.path("x.tar"));
  ASSERT_TRUE(opening.result.ok()) << opening.result.error().message;
  const Source& source = opening.source();
  EXPECT_EQ(keys_of(source), (Strings{"b/2.jpg", "1.jpg", "v.1/k.npy"}));
  EXPECT_EQ(labels_of(source), (Labels{7, 3, 12}));
  EXPECT_EQ(bytes_of(source, 0), "two");
  EXPECT_EQ(bytes_of(source, 1), "one");
  EXPECT_TRUE(source.classes().empty());
  EXPECT_TRUE(opening.warnings.empty());
  const Extent extent = source.locate(1);
  EXPECT_TRUE(extent.shared);
  EXPECT_EQ(extent.path, "x.tar");
  EXPECT_EQ(extent.display, folder.path("x.tar") + ": 1.jpg");
  EXPECT_EQ(extent.stamp.size, fs::file_size(folder.path("x.tar")));
}

TEST(TarTest, TheLabelFieldCanBeNamedAlsoInsideOtherFields) {
  const TestFolder folder;
  folder.write("x.tar", tar_entry("a.jpg", "1") + tar_entry("a.json", R"({"meta": {"class": 4}, "label": 9})") +
                            tar_entry("b.jpg", "1") + tar_entry("b.json", R"({"meta.class": 5})") + tar_end());
  SourceOptions options;
  options.datasets = {folder.path("x.tar")};
  options.label_field = "meta.class";
  EXPECT_EQ(labels_of(open_with(options).source()), (Labels{4, 5}));
}

TEST(TarTest, LabelsThatAreMissingOrNoIntegersAreReported) {
  const TestFolder folder;
  folder.write("x.tar", tar_entry("a.jpg", "1") + tar_entry("a.cls", "cat") + tar_entry("b.jpg", "1") +
                            tar_entry("b.cls", "2") + tar_entry("c.jpg", "1") + tar_entry("d.cls", "4") + tar_end());
  const Opening opening = open_at(folder.path("x.tar"));
  EXPECT_EQ(labels_of(opening.source()), (Labels{kNoLabel, 2, kNoLabel}));
  EXPECT_TRUE(opening.warned_of("1 label member that holds no integer, taken as no label: x.tar: a.cls"));
  EXPECT_TRUE(opening.warned_of("2 samples without label: first is a.jpg"));
  EXPECT_TRUE(opening.warned_of("1 group in tars skipped"));
  EXPECT_TRUE(opening.warned_of(": x.tar: d"));
}

TEST(TarLabelTest, OnlyWholeNumbersAreLabels) {
  EXPECT_EQ(label_of_cls("  -12\r\n").value, -12);
  for (const char* text : {"", " ", "1.5", "0x10", "1 2", "99999999999999999999", "a1"}) {
    EXPECT_FALSE(label_of_cls(text).value) << text;
  }
  EXPECT_EQ(label_of_json(R"({"l": 3.0})", "l").value, 3);
  for (const char* value : {"3.5", "\"3\"", "true", "null", "[1]", "1e300", "18446744073709551615"}) {
    const FoundLabel found = label_of_json(fmt::format("{{\"l\": {}}}", value), "l");
    EXPECT_TRUE(found.has_field) << value;
    EXPECT_FALSE(found.value) << value;
  }
  for (const char* text : {"", "{", "[1, 2]", "7", "{\"m\": 1}", "{\"l\": 1"}) {
    EXPECT_FALSE(label_of_json(text, "l").has_field) << text;
  }
  const std::string deep = std::string(500'000, '[') + std::string(500'000, ']');
  EXPECT_FALSE(label_of_json(deep, "l").has_field);
}

void fill_tree(const TestFolder& folder) {
  for (const char* name : {"data/cat/1.jpg", "data/cat/1.png", "data/cat/2.x.jpg", "data/cat/2.y.jpg",
                           "data/cat/sub/0.jpg", "data/cat/sub-1/0.jpg", "data/dog/7.jpg", "data/dog/.hidden.jpg",
                           "data/dog/note.txt", "data/Zebra/1.jpg", "data/stray.jpg"}) {
    folder.write(name, name);
  }
  fs::create_directory(folder.path("data/empty"));
}

TEST(TarTest, ATarOfAFolderIsTheSameDatasetAsTheFolder) {
  const TestFolder folder;
  fill_tree(folder);
  const Opening original = open_at(folder.path("data"));
  ASSERT_TRUE(original.result.ok());
  ASSERT_EQ(original.source().size(), 8u);
  const Strings commands{"tar cf x.tar --sort=name data",
                         "tar cf x.tar data",
                         "tar -C data -cf x.tar .",
                         "tar cf x.tar $PWD/data 2>/dev/null",
                         "cd data && tar cf ../x.tar *",
                         "tar cf x.tar --format=posix data",
                         "tar cf x.tar data/dog data/[Zce]* data/stray.jpg"};
  for (const std::string& command : commands) {
    run("cd " + folder.path() + " && rm -f x.tar && " + command);
    const Opening tar = open_at(folder.path("x.tar"));
    ASSERT_TRUE(tar.result.ok()) << command;
    EXPECT_EQ(keys_of(tar.source()), keys_of(original.source())) << command;
    EXPECT_EQ(labels_of(tar.source()), labels_of(original.source())) << command;
    EXPECT_EQ(tar.source().classes(), original.source().classes()) << command;
    EXPECT_EQ(tar.source().fingerprint(), original.source().fingerprint()) << command;
    for (SampleId id = 0; id < tar.source().size(); ++id) {
      EXPECT_EQ(bytes_of(tar.source(), id), bytes_of(original.source(), id));
    }
    EXPECT_TRUE(tar.warned_of("1 file beside the class folders ignored"));
    EXPECT_TRUE(tar.warned_of("1 class folder without samples: empty"));
  }
}

TEST(TarTest, ATarOfAFlatFolderIsTheSameDatasetAsTheFolder) {
  const TestFolder folder;
  for (const char* name : {"flat/b.jpg", "flat/a.jpg", "flat/c.bin"}) folder.write(name, name);
  const Opening original = open_at(folder.path("flat"));
  for (const char* command : {"tar cf x.tar flat", "tar -C flat -cf x.tar .", "cd flat && tar cf ../x.tar *"}) {
    run("cd " + folder.path() + " && rm -f x.tar && " + command);
    const Opening tar = open_at(folder.path("x.tar"));
    EXPECT_EQ(tar.source().fingerprint(), original.source().fingerprint()) << command;
    EXPECT_EQ(labels_of(tar.source()), Labels(3, kNoLabel));
  }
}

TEST(TarTest, ShardsOfAListAreOneDataset) {
  const TestFolder folder;
  for (int i = 0; i < 12; ++i) {
    folder.write(fmt::format("train-{:03}.tar", i), tar_entry(fmt::format("{}.jpg", i), std::to_string(i)) +
                                                        tar_entry(fmt::format("{}.cls", i), "1") + tar_end());
  }
  const Opening braces = open_at(folder.path("train-{000..011}.tar"));
  ASSERT_TRUE(braces.result.ok()) << braces.result.error().message;
  ASSERT_EQ(braces.source().size(), 12u);
  for (SampleId id = 0; id < 12; ++id) {
    EXPECT_EQ(bytes_of(braces.source(), id), std::to_string(id));
    EXPECT_EQ(braces.source().locate(id).file, id);
  }
  EXPECT_EQ(open_at(folder.path("train-*.tar")).source().fingerprint(), braces.source().fingerprint());
  EXPECT_EQ(open_at(folder.path("train-{000..011}.tar")).progress_calls, 0u);
  EXPECT_EQ(open_at("tar:" + folder.path("train-{000..011}.tar")).progress_calls, 0u);
}

TEST(TarTest, EveryShardMustExistAndBeATar) {
  const TestFolder folder;
  folder.write("a-0.tar", tar_entry("1.jpg", "1") + tar_end());
  const Opening missing = open_at(folder.path("a-{0..1}.tar"));
  ASSERT_FALSE(missing.result.ok());
  EXPECT_EQ(missing.result.error().code, Code::kNotFound);
  EXPECT_NE(missing.result.error().message.find("a-1.tar"), std::string::npos);
  folder.write("a-1.tar", "this is text, and a lot of it" + std::string(2000, '.'));
  const Opening wrong = open_at(folder.path("a-{0..1}.tar"));
  EXPECT_NE(wrong.result.error().message.find("a-1.tar: it is not a tar"), std::string::npos);
  run("cd " + folder.path() + " && gzip -c a-0.tar > a-1.tar");
  EXPECT_NE(open_at(folder.path("a-*.tar")).result.error().message.find("gzip"), std::string::npos);
  EXPECT_TRUE(index_files(folder.path()).empty());
}

TEST(TarTest, AChangedShardIsIndexedAgain) {
  const TestFolder folder;
  const std::string path = folder.write("x.tar", tar_entry("1.jpg", "1") + tar_end());
  EXPECT_EQ(open_at(path).source().size(), 1u);
  EXPECT_EQ(open_at(path).progress_calls, 0u);
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  folder.write("x.tar", tar_entry("2.jpg", "1") + tar_end());
  const Opening opening = open_at(path);
  EXPECT_GT(opening.progress_calls, 0u);
  EXPECT_EQ(keys_of(opening.source()), (Strings{"2.jpg"}));
}

TEST(TarTest, TheLabelFieldIsPartOfTheIndexsIdentity) {
  const TestFolder folder;
  folder.write("x.tar", tar_entry("a.jpg", "1") + tar_entry("a.json", R"({"x": 1, "y": 2})") + tar_end());
  SourceOptions options;
  options.datasets = {folder.path("x.tar")};
  for (int again = 0; again < 2; ++again) {
    options.label_field = "x";
    EXPECT_EQ(open_with(options).source().label(0), 1);
    options.label_field = "y";
    const Opening opening = open_with(options);
    EXPECT_EQ(opening.source().label(0), 2);
    EXPECT_EQ(opening.progress_calls == 0, again == 1);
  }
}

TEST(TarTest, ATruncatedTailIsReportedWithShardAndEntry) {
  const TestFolder folder;
  folder.write("x.tar", tar_entry("a/1.jpg", "1") + tar_header("a/2.jpg", 8ull << 30) + "only a little");
  const Opening opening = open_at(folder.path("x.tar"));
  ASSERT_TRUE(opening.result.ok());
  EXPECT_EQ(opening.source().size(), 1u);
  EXPECT_TRUE(opening.warned_of(": x.tar: a/2.jpg")) << opening.warnings.at(0);
  EXPECT_TRUE(open_at(folder.path("x.tar")).warned_of(": x.tar: a/2.jpg"));
}

TEST(TarTest, ACutBetweenTwoEntriesIsReportedWithShardAndLastEntry) {
  const TestFolder folder;
  folder.write("x.tar", tar_entry("a/1.jpg", "1") + tar_entry("a/2.jpg", "2"));
  const Opening opening = open_at(folder.path("x.tar"));
  ASSERT_TRUE(opening.result.ok());
  EXPECT_EQ(opening.source().size(), 2u);
  EXPECT_TRUE(opening.warned_of(": x.tar: after a/2.jpg"));
}

TEST(TarTest, EvilNamesAreOnlyKeysOrRefused) {
  const TestFolder folder;
  const std::string nul = pax_record("path", std::string_view("a\0b.jpg", 7));
  const std::string endless = pax_record("path", std::string(5000, 'n') + ".jpg");
  folder.write("x.tar", tar_entry("/etc/passwd.jpg", "1") + tar_entry("../up.jpg", "2") +
                            tar_entry("a/../../b.jpg", "3") + tar_entry("x", nul, 'x') + tar_entry("n.jpg", "4") +
                            tar_entry("x", endless, 'x') + tar_entry("n.jpg", "5") + tar_entry("etc//./ok.jpg", "6") +
                            tar_entry("l.jpg", "", '2') + tar_entry("h.jpg", "", '1') + tar_entry("dev.jpg", "", '3') +
                            tar_end());
  const Opening opening = open_at(folder.path("x.tar"));
  ASSERT_TRUE(opening.result.ok()) << opening.result.error().message;
  EXPECT_EQ(keys_of(opening.source()), (Strings{"ok.jpg", "passwd.jpg"}));
  EXPECT_EQ(bytes_of(opening.source(), 1), "1");
  for (SampleId id = 0; id < 2; ++id) EXPECT_EQ(opening.source().locate(id).path, "x.tar");
  EXPECT_TRUE(opening.warned_of("4 tar entries skipped because of their name"));
  EXPECT_TRUE(opening.warned_of("2 links in tars skipped"));
  EXPECT_TRUE(opening.warned_of("1 entry of another type in tars skipped"));
}

TEST(TarTest, MemberNamesAreMadePlain) {
  EXPECT_EQ(plain_member_name("./a//b/./c.jpg"), "a/b/c.jpg");
  EXPECT_EQ(plain_member_name("///a/"), "a");
  EXPECT_EQ(plain_member_name("./"), "");
  EXPECT_EQ(plain_member_name("a..b/..c/d.."), "a..b/..c/d..");
  EXPECT_FALSE(plain_member_name("a/.."));
  EXPECT_FALSE(plain_member_name(".."));
  EXPECT_FALSE(plain_member_name(std::string_view("a\0b", 3)));
  EXPECT_FALSE(plain_member_name(std::string(4096, 'x')));
  EXPECT_TRUE(plain_member_name(std::string(4095, 'x')));
}

TEST(TarTest, AShardThatLinksOutsideIsRefusedInAList) {
  const TestFolder outside;
  outside.write("secret.tar", tar_entry("1.jpg", "1") + tar_end());
  const TestFolder folder;
  folder.write("a-0.tar", tar_entry("0.jpg", "1") + tar_end());
  fs::create_symlink(outside.path("secret.tar"), folder.path("a-1.tar"));
  const Opening list = open_at(folder.path("a-*.tar"));
  ASSERT_FALSE(list.result.ok());
  EXPECT_NE(list.result.error().message.find("a-1.tar"), std::string::npos);
  EXPECT_TRUE(open_at(folder.path("a-1.tar")).result.ok());
  ASSERT_EQ(mkfifo(folder.path("b-0.tar").c_str(), 0600), 0);
  EXPECT_FALSE(open_at(folder.path("b-*.tar")).result.ok());
  EXPECT_FALSE(open_at(folder.path("b-0.tar")).result.ok());
}

TEST(TarTest, TheSameKeyTwiceIsKeptTwiceWithAWarning) {
  const TestFolder folder;
  folder.write("x.tar",
               tar_entry("a/1.jpg", "old") + tar_entry("b/1.jpg", "x") + tar_entry("a/1.jpg", "new") + tar_end());
  const Opening opening = open_at(folder.path("x.tar"));
  EXPECT_EQ(keys_of(opening.source()), (Strings{"a/1.jpg", "a/1.jpg", "b/1.jpg"}));
  EXPECT_EQ(bytes_of(opening.source(), 0), "old");
  EXPECT_EQ(bytes_of(opening.source(), 1), "new");
  EXPECT_TRUE(opening.warned_of("1 key is there more than once, all are kept: a/1.jpg"));
}

TEST(TarTest, SeveralPayloadsInAGroupGiveOneSample) {
  const TestFolder folder;
  folder.write("x.tar", tar_entry("a.png", "p") + tar_entry("a.jpg", "j") + tar_entry("a.cls", "1") +
                            tar_entry("b.left.jpg", "l") + tar_entry("b.right.jpg", "r") + tar_entry("b.cls", "2") +
                            tar_end());
  const Opening opening = open_at(folder.path("x.tar"));
  EXPECT_EQ(keys_of(opening.source()), (Strings{"a.png", "b.left.jpg"}));
  EXPECT_TRUE(opening.warned_of("2 groups in tars have several samples, the first is taken: first is a.png"));
}

TEST(TarTest, ATarWithoutSamplesIsAnErrorThatSaysWhatWasLookedFor) {
  const TestFolder folder;
  folder.write("x.tar", tar_entry("a.txt", "1") + tar_entry("b.md", "1") + tar_end());
  const Opening opening = open_at(folder.path("x.tar"));
  ASSERT_FALSE(opening.result.ok());
  EXPECT_EQ(opening.result.error().code, Code::kNotFound);
  EXPECT_NE(opening.result.error().message.find(".jpg .jpeg .png"), std::string::npos);
  EXPECT_NE(opening.result.error().message.find("2 others were ignored"), std::string::npos);
}

// R11: 8 GiB claimed in a small file, and a JSON bomb beside it.
TEST(TarTest, AbsurdEntriesCostNeitherTimeNorMemory) {
  const TestFolder folder;
  folder.write("x.tar", tar_entry("a.jpg", "1") + tar_entry("a.json", std::string(1 << 20, '[')) +
                            tar_header("b.json", 8ull << 30) + std::string(1000, 'x'));
  const Bytes before = peak_resident_bytes();
  const auto start = std::chrono::steady_clock::now();
  const Opening opening = open_at(folder.path("x.tar"));
  const auto took = std::chrono::steady_clock::now() - start;
  ASSERT_TRUE(opening.result.ok());
  EXPECT_LT(peak_resident_bytes() - before, 64_MiB);
  EXPECT_LT(std::chrono::duration<double>(took).count(), 2.0);
}

}  // namespace
}  // namespace foreload
