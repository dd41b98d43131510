#include <gtest/gtest.h>

#include <filesystem>

#include "source/local_source.h"
#include "source/source_testing.h"

namespace foreload {
namespace {

namespace fs = std::filesystem;

using Strings = std::vector<std::string>;
using Labels = std::vector<std::int64_t>;

std::string error_of(const std::string& uri) {
  const Opening opening = open_at(uri);
  return opening.result.ok() ? "" : opening.result.error().message;
}

SourceOptions options_for(Strings datasets) {
  SourceOptions options;
  options.datasets = std::move(datasets);
  return options;
}

TEST(OpenSourceTest, TheKindFollowsFromThePathOrIsNamed) {
  const TestFolder folder;
  folder.write("d/a/1.jpg", "x");
  folder.write("x.tar", tar_entry("1.jpg", "1") + tar_end());
  folder.write("archive", tar_entry("1.jpg", "1") + tar_end());
  EXPECT_TRUE(open_at(folder.path("d")).result.ok());
  EXPECT_TRUE(open_at("folder:" + folder.path("d")).result.ok());
  EXPECT_TRUE(open_at(folder.path("x.tar")).result.ok());
  EXPECT_TRUE(open_at("tar:" + folder.path("archive")).result.ok());
  EXPECT_NE(error_of(folder.path("archive")).find("write tar:" + folder.path("archive")), std::string::npos);
  EXPECT_NE(error_of("folder:" + folder.path("x.tar")), "");
  EXPECT_EQ(open_at("folder:" + folder.path("d")).source().uri(), "folder:" + folder.path("d"));
}

TEST(OpenSourceTest, PathsThatCanNotWorkAreRefusedByName) {
  const TestFolder folder;
  EXPECT_EQ(open_at(folder.path("missing")).result.error().code, Code::kNotFound);
  EXPECT_NE(error_of(folder.path("missing")).find(folder.path("missing")), std::string::npos);
  EXPECT_NE(error_of(""), "");
  EXPECT_NE(error_of("folder:"), "");
  EXPECT_NE(error_of(std::string("a\0b", 3)).find("a\\x00b"), std::string::npos);
  EXPECT_NE(error_of("/dev/null").find("neither a folder nor a file"), std::string::npos);
  EXPECT_NE(error_of(folder.write("x.tar.gz", "x")).find("unpack"), std::string::npos);
  EXPECT_EQ(open_with({}).result.error().code, Code::kInvalid);
  EXPECT_NE(error_of(std::string(5000, 'x')), "");
}

TEST(OpenSourceTest, OnlyKnownSchemesAreAccepted) {
  for (const char* uri : {"http:x/y.tar", "https://user@x/y.tar", "s3://bucket/../key.tar", "http://x/%2e%2e/y.tar"}) {
    EXPECT_NE(error_of(uri).find("can not be used"), std::string::npos) << uri;
    EXPECT_EQ(open_at(uri).result.error().code, Code::kInvalid);
  }
  const TestFolder folder;
  folder.write("pipe:x/1.jpg", "x");
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  for (const char* uri : {"file:/etc/passwd", "file:///etc", "pipe:cat x", "pipe:x", "gs://b", "FOLDER:x"}) {
    EXPECT_NE(error_of(uri).find("is refused"), std::string::npos) << uri;
  }
  EXPECT_TRUE(open_at("./pipe:x").result.ok());
  EXPECT_TRUE(open_at("folder:pipe:x").result.ok());
  fs::current_path(before);
}

TEST(OpenSourceTest, RelativePathsWork) {
  const TestFolder folder;
  folder.write("a/1.jpg", "x");
  folder.write("t-0.tar", tar_entry("1.jpg", "one") + tar_end());
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  const Opening dot = open_at(".");
  const Opening tar = open_at("t-{0..0}.tar");
  EXPECT_EQ(open_at("t-0.tar").source().size(), 1u);
  fs::current_path(before);
  EXPECT_EQ(keys_of(dot.source()), (Strings{"a/1.jpg"}));
  ASSERT_TRUE(tar.result.ok()) << tar.result.error().message;
  EXPECT_EQ(bytes_of(tar.source(), 0), "one");
}

// Two folders with the same classes, and a tar.
struct Several {
  Several() {
    for (const char* name : {"p/a/1.jpg", "p/b/2.jpg", "q/a/3.jpg", "q/b/1.jpg"}) folder.write(name, name);
    folder.write("r.tar", tar_entry("5.jpg", "five") + tar_entry("5.cls", "50") + tar_entry("6.jpg", "six") +
                              tar_entry("6.cls", "60") + tar_end());
  }
  TestFolder folder;
  Strings folders() const { return {folder.path("p"), folder.path("q")}; }
  Strings all() const { return {folder.path("p"), folder.path("q"), folder.path("r.tar")}; }
};

TEST(OpenSourceTest, ConcatenationKeepsOrderKeysAndLabels) {
  const Several several;
  const Opening opening = open_with(options_for(several.all()));
  ASSERT_TRUE(opening.result.ok()) << opening.result.error().message;
  const Source& source = opening.source();
  EXPECT_EQ(keys_of(source), (Strings{"a/1.jpg", "b/2.jpg", "a/3.jpg", "b/1.jpg", "5.jpg", "6.jpg"}));
  EXPECT_EQ(labels_of(source), (Labels{0, 1, 0, 1, 50, 60}));
  EXPECT_EQ(bytes_of(source, 2), "q/a/3.jpg");
  EXPECT_EQ(bytes_of(source, 5), "six");
  EXPECT_EQ(source.max_length(), 9u);
  EXPECT_EQ(source.total_bytes(), 4u * 9 + 7);
  EXPECT_TRUE(source.classes().empty());
  EXPECT_TRUE(opening.warned_of("have different classes"));
  std::vector<std::uint64_t> files;
  for (SampleId id = 0; id < source.size(); ++id) files.push_back(source.locate(id).file);
  EXPECT_EQ(files, (std::vector<std::uint64_t>{0, 1, 2, 3, 4, 4}));
}

TEST(OpenSourceTest, ConcatenationOfTheSameClassesKeepsTheirNames) {
  const Several several;
  const Opening opening = open_with(options_for(several.folders()));
  EXPECT_EQ(opening.source().classes(), (Strings{"a", "b"}));
  EXPECT_TRUE(opening.warnings.empty());
}

TEST(OpenSourceTest, TheFingerprintDependsOnSamplesAndOrderAlone) {
  const Several several;
  const Strings parts = several.folders();
  const std::uint64_t both = open_with(options_for(parts)).source().fingerprint();
  EXPECT_NE(both, open_with(options_for({parts[1], parts[0]})).source().fingerprint());
  EXPECT_NE(both, open_at(parts[0]).source().fingerprint());
  run("cp -r " + parts[0] + " " + several.folder.path("copy"));
  EXPECT_EQ(both, open_with(options_for({several.folder.path("copy"), parts[1]})).source().fingerprint());
  SourceOptions options = options_for(parts);
  options.subset = std::vector<SampleId>{0, 1, 2, 3};
  EXPECT_EQ(both, open_with(options).source().fingerprint());
  options.subset = std::vector<SampleId>{0, 1};
  EXPECT_EQ(open_at(parts[0]).source().fingerprint(), open_with(options).source().fingerprint());
}

TEST(OpenSourceTest, ASubsetTakesIdsOrKeysInTheGivenOrder) {
  const Several several;
  SourceOptions options = options_for(several.all());
  options.subset = std::vector<SampleId>{4, 0, 4};
  Opening opening = open_with(options);
  EXPECT_EQ(keys_of(opening.source()), (Strings{"5.jpg", "a/1.jpg", "5.jpg"}));
  EXPECT_EQ(labels_of(opening.source()), (Labels{50, 0, 50}));
  EXPECT_EQ(opening.source().total_bytes(), 4u + 9 + 4);
  EXPECT_EQ(bytes_of(opening.source(), 2), "five");
  options.subset = Strings{"6.jpg", "a/3.jpg"};
  opening = open_with(options);
  EXPECT_EQ(keys_of(opening.source()), (Strings{"6.jpg", "a/3.jpg"}));
  EXPECT_EQ(opening.source().max_length(), 9u);
}

TEST(OpenSourceTest, ASubsetOfWhatIsNotThereIsAnErrorThatNamesIt) {
  const Several several;
  SourceOptions options = options_for(several.all());
  options.subset = std::vector<SampleId>{5, 6};
  EXPECT_NE(open_with(options).result.error().message.find("sample 6"), std::string::npos);
  options.subset = Strings{"6.jpg", "a/4.jpg", "x"};
  Opening opening = open_with(options);
  EXPECT_NE(opening.result.error().message.find("a/4.jpg"), std::string::npos);
  EXPECT_EQ(opening.result.error().code, Code::kNotFound);
  options.subset = Strings{};
  EXPECT_EQ(open_with(options).result.error().code, Code::kInvalid);
  options = options_for({several.folder.path("p"), several.folder.path("p")});
  options.subset = Strings{"a/1.jpg"};
  EXPECT_NE(open_with(options).result.error().message.find("2 times"), std::string::npos);
}

TEST(OpenSourceTest, DimensionsAreStoredForAllPartsButNotForSubsets) {
  const Several several;
  const std::vector<Dimensions> dimensions{{1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 5}, {6, 6}};
  ASSERT_TRUE(store_dimensions(open_with(options_for(several.all())).source(), dimensions).ok());
  SourceOptions options = options_for(several.all());
  options.subset = std::vector<SampleId>{5, 2};
  const Opening opening = open_with(options);
  EXPECT_EQ(opening.progress_calls, 0u);
  EXPECT_EQ(opening.source().dimensions(0)->width, 6u);
  EXPECT_EQ(opening.source().dimensions(1)->height, 3u);
  EXPECT_EQ(store_dimensions(opening.source(), std::span(dimensions).first(2)).error().code, Code::kInvalid);
}

}  // namespace
}  // namespace foreload
