#include "source/tar_reader.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <random>
#include <sstream>

#include "source/source_testing.h"

namespace foreload {
namespace {

struct Listing {
  std::vector<TarMember> members;
  std::optional<std::string> truncated;
  bool is_unmarked = false;
  std::string error;
};

Listing list(const std::string& archive) {
  Listing listing;
  TarReader reader(reader_over(archive), archive.size());
  for (std::size_t i = 0; i < 1'000'000; ++i) {
    auto next = reader.next();
    if (!next.ok()) {
      listing.error = next.error().message;
      break;
    }
    if (!*next) break;
    listing.members.push_back(**next);
  }
  listing.truncated = reader.truncated();
  listing.is_unmarked = reader.is_unmarked();
  return listing;
}

std::string content(const std::string& archive, const TarMember& member) {
  return archive.substr(member.offset, member.size);
}

std::string read_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// What the members say: name → content.
std::map<std::string, std::string> files_of(const std::string& archive) {
  std::map<std::string, std::string> files;
  const Listing listing = list(archive);
  EXPECT_EQ(listing.error, "");
  EXPECT_FALSE(listing.truncated) << *listing.truncated;
  for (const TarMember& member : listing.members) {
    if (member.type == TarType::kFile) files[member.name] = content(archive, member);
  }
  return files;
}

TEST(TarReaderTest, ReadsEveryFormatOfGnuTar) {
  const TestFolder folder;
  std::map<std::string, std::string> expected;
  const auto add = [&](const std::string& name, std::size_t size) {
    expected[name] = std::string(size, static_cast<char>('a' + size % 26));
    folder.write("in/" + name, expected[name]);
  };
  for (const std::size_t size : {0, 1, 511, 512, 513, 100'000}) add(fmt::format("class/file{}.jpg", size), size);
  for (const char* format : {"v7", "ustar", "gnu", "posix"}) {
    if (std::string_view(format) == "ustar") add(std::string(90, 'p') + "/" + std::string(99, 'n'), 77);
    if (std::string_view(format) == "gnu") {
      add(std::string(200, 'd') + "/" + std::string(200, 'e') + "/" + std::string(200, 'f') + ".jpg", 5);
      add("umlaut-äöü.jpg", 6);
    }
    const std::string archive = folder.path("out.tar");
    run(fmt::format("cd {} && find . -type f | sed 's,^./,,' | tar cf {} --format={} -T -", folder.path("in"), archive,
                    format));
    EXPECT_EQ(files_of(read_file(archive)), expected) << format;
  }
}

TEST(TarReaderTest, ReadsEveryFormatOfPythonsTarfile) {
  if (access("/usr/bin/python3", X_OK) != 0) GTEST_SKIP() << "no /usr/bin/python3";
  const TestFolder folder;
  folder.write("make.py", R"(
import io, sys, tarfile
for form in ("USTAR", "GNU", "PAX"):
    with tarfile.open(sys.argv[1] + "/" + form, "w", format=getattr(tarfile, form + "_FORMAT")) as tar:
        names = ["a.jpg", "ü/b.jpg"]
        if form != "USTAR":
            names.append("x" * 300 + "/" + "y" * 300)
        for name in names:
            info = tarfile.TarInfo(name)
            info.size = len(name) * 100
            if form == "PAX":
                info.pax_headers = {"comment": "line\nbreak = and more", "SCHILY.xattr.x": "\0binary"}
            tar.addfile(info, io.BytesIO(b"z" * info.size))
)");
  run("/usr/bin/python3 " + folder.path("make.py") + " " + folder.path());
  for (const char* format : {"USTAR", "GNU", "PAX"}) {
    const auto files = files_of(read_file(folder.path(format)));
    EXPECT_EQ(files.size(), std::string_view(format) == "USTAR" ? 2u : 3u) << format;
    EXPECT_EQ(files.at("a.jpg").size(), 500u);
    EXPECT_TRUE(files.count("ü/b.jpg")) << format;
    if (files.size() == 3) {
      EXPECT_EQ(files.at(std::string(300, 'x') + "/" + std::string(300, 'y')).size(), 60100u);
    }
  }
}

TEST(TarReaderTest, SkipsWhatIsNoPlainFile) {
  const TestFolder folder;
  folder.write("in/file.jpg", "bytes");
  run("cd " + folder.path("in") +
      " && ln file.jpg hard.jpg && ln -s file.jpg soft.jpg && mkfifo pipe.jpg && mkdir sub");
  run("cd " + folder.path("in") +
      " && truncate -s 1M sparse.jpg && printf x | dd of=sparse.jpg bs=1 seek=600000 conv=notrunc 2>/dev/null");
  folder.write("in/zz.jpg", "last");
  for (const char* format : {"gnu", "posix"}) {
    const std::string archive = folder.path("out.tar");
    run(fmt::format("cd {} && tar cf {} --sparse --format={} --sort=name *", folder.path("in"), archive, format));
    std::map<std::string, TarType> types;
    const std::string bytes = read_file(archive);
    const Listing listing = list(bytes);
    EXPECT_EQ(listing.error, "");
    for (const TarMember& member : listing.members) types[member.name] = member.type;
    EXPECT_EQ(types, (std::map<std::string, TarType>{{"file.jpg", TarType::kFile},
                                                     {"hard.jpg", TarType::kLink},
                                                     {"pipe.jpg", TarType::kSpecial},
                                                     {"soft.jpg", TarType::kLink},
                                                     {"sparse.jpg", TarType::kSparse},
                                                     {"sub/", TarType::kDirectory},
                                                     {"zz.jpg", TarType::kFile}}))
        << format;
    EXPECT_EQ(content(bytes, listing.members.back()), "last");
  }
}

// A map of more than 4 + 21 pieces takes several continuation blocks.
TEST(TarReaderTest, SkipsLongMapsOfSparseFiles) {
  const TestFolder folder;
  {
    std::ofstream file(folder.path("a.bin"), std::ios::binary);
    for (int i = 0; i < 80; ++i) {
      file.seekp(i * 100'000);
      file << "piece";
    }
  }
  folder.write("b.jpg", "after");
  run("cd " + folder.path() + " && tar cf out --sparse --format=gnu a.bin b.jpg");
  const std::string bytes = read_file(folder.path("out"));
  const Listing listing = list(bytes);
  ASSERT_EQ(listing.members.size(), 2u) << listing.error;
  EXPECT_EQ(listing.members[0].type, TarType::kSparse);
  EXPECT_EQ(content(bytes, listing.members[1]), "after");
}

TEST(TarReaderTest, PaxSizeAndPathWinAndGlobalOnesLast) {
  const std::string archive = tar_entry("g", pax_record("path", "everywhere.jpg"), 'g') +                     //
                              tar_entry("one.jpg", "1") +                                                     //
                              tar_entry("x", pax_record("path", "own.jpg") + pax_record("size", "3"), 'x') +  //
                              tar_header("two.jpg", 0) + padded("two") +                                      //
                              tar_entry("x", pax_record("path", ""), 'x') + tar_entry("three.jpg", "3") +     //
                              tar_entry("four.jpg", "4") + tar_end();
  const Listing listing = list(archive);
  ASSERT_EQ(listing.members.size(), 4u) << listing.error;
  EXPECT_EQ(listing.members[0].name, "everywhere.jpg");
  EXPECT_EQ(listing.members[1].name, "own.jpg");
  EXPECT_EQ(content(archive, listing.members[1]), "two");
  EXPECT_EQ(listing.members[2].name, "three.jpg");
  EXPECT_EQ(listing.members[3].name, "everywhere.jpg");
}

TEST(TarReaderTest, ReadsBase256Sizes) {
  std::string header = tar_header("big.jpg", 0);
  const char size[12] = {'\x80', 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1};  // 513
  std::memcpy(header.data() + 124, size, sizeof size);
  set_checksum(header);
  const std::string archive = header + padded(std::string(513, 'q')) + tar_entry("next.jpg", "n") + tar_end();
  const Listing listing = list(archive);
  ASSERT_EQ(listing.members.size(), 2u) << listing.error;
  EXPECT_EQ(listing.members[0].size, 513u);
}

TEST(TarReaderTest, AcceptsSignedChecksums) {
  std::string header = tar_header("\xff\xfe.jpg", 1);
  std::memset(header.data() + 148, ' ', 8);
  int sum = 0;
  for (const char c : header) sum += static_cast<signed char>(c);
  std::snprintf(header.data() + 148, 8, "%06o", static_cast<unsigned>(sum));
  EXPECT_EQ(list(header + padded("x") + tar_end()).members.size(), 1u);
}

TEST(TarReaderTest, ATruncatedTailLosesOnlyTheLastEntryAndNamesIt) {
  const std::string archive = tar_entry("1.jpg", std::string(700, '1')) + tar_entry("2.jpg", std::string(700, '2')) +
                              tar_entry("L", std::string(150, 'n') + ".jpg" + std::string(1, '\0'), 'L') +
                              tar_entry("short", "333");
  const std::size_t second = 512 + 1024;
  const std::size_t extension = 2 * second;
  for (std::size_t size = 1; size <= archive.size(); ++size) {
    const Listing listing = list(archive.substr(0, size));
    const std::size_t end_of_third = archive.size() - 512 + 3;
    const std::size_t complete = (size >= 512 + 700) + (size >= second + 512 + 700) + (size >= end_of_third);
    if (size < 512) {
      EXPECT_NE(listing.error, "") << size;
      continue;
    }
    EXPECT_EQ(listing.error, "") << size;
    EXPECT_EQ(listing.members.size(), complete) << size;
    const bool is_at_border = (size >= 512 + 700 && size <= second) ||
                              (size >= second + 512 + 700 && size <= extension) || size >= end_of_third;
    EXPECT_EQ(listing.truncated.has_value(), !is_at_border) << size;
    EXPECT_EQ(listing.is_unmarked, is_at_border) << size;
    if (size == second + 600) {
      EXPECT_EQ(*listing.truncated, "2.jpg");
    }
    if (size == second + 100) {
      EXPECT_EQ(*listing.truncated, "the one after 1.jpg");
    }
  }
}

TEST(TarReaderTest, AnEndMarkMayBeShortButNotMissing) {
  const std::string entry = tar_entry("1.jpg", "1");
  EXPECT_TRUE(list(entry).is_unmarked);
  for (const std::size_t zeros : {1, 512, 513, 1024, 9216}) {
    EXPECT_FALSE(list(entry + std::string(zeros, '\0')).is_unmarked) << zeros;
  }
}

TEST(TarReaderTest, AnAbsurdSizeIsATruncatedTail) {
  for (const char* size : {"8589934592", "9223372036854775807", "18446744073709551615"}) {
    const std::string archive = tar_entry("ok.jpg", "1") + tar_entry("x", pax_record("size", size), 'x') +
                                tar_header("absurd.jpg", 0) + padded("xyz") + tar_end();
    const Listing listing = list(archive);
    EXPECT_EQ(listing.members.size(), 1u);
    EXPECT_EQ(listing.truncated, "absurd.jpg");
  }
}

TEST(TarReaderTest, RefusesWhatIsNoTar) {
  EXPECT_NE(list("").error.find("not a tar"), std::string::npos);
  EXPECT_NE(list("hello").error.find("not a tar"), std::string::npos);
  EXPECT_NE(list(std::string(5000, 'x')).error.find("not a tar"), std::string::npos);
  EXPECT_EQ(list(tar_end()).error, "");
}

TEST(TarReaderTest, DamageInTheMiddleIsAnErrorThatSaysWhere) {
  std::string archive = tar_entry("1.jpg", "1") + tar_entry("2.jpg", "2") + tar_end();
  archive[1024 + 5] ^= 1;
  const Listing listing = list(archive);
  EXPECT_EQ(listing.members.size(), 1u);
  EXPECT_NE(listing.error.find("damaged at byte 1024, after the entry 1.jpg"), std::string::npos) << listing.error;
}

TEST(TarReaderTest, RefusesHugeExtensionHeadersAndWrongRecords) {
  EXPECT_NE(list(tar_entry("L", std::string(2 << 20, 'n'), 'L') + tar_entry("x", "1")).error, "");
  for (const char* text : {"0 path=x\n", "99 path=x\n", "9 path=xx\n", "x", "7 path=x\n", "18446744073709551616 a=b\n",
                           "5 a=b", "6 abcd\n"}) {
    EXPECT_NE(list(tar_entry("x", text, 'x') + tar_entry("a", "1")).error, "") << text;
  }
}

TEST(TarReaderTest, RandomDamageNeitherCrashesNorHangs) {
  const std::string whole = tar_entry("x", pax_record("path", "own.jpg"), 'x') + tar_entry("a.jpg", "1") +
                            tar_entry("L", std::string(150, 'n'), 'L') + tar_entry("b", std::string(3000, 'b')) +
                            tar_entry("S.jpg", "sparse", 'S') + tar_entry("c.jpg", "") + tar_end();
  const unsigned seed = 4711;
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 3000; ++round) {
    std::string archive = whole;
    for (unsigned flips = 1 + random() % 4; flips > 0; --flips) {
      archive[random() % archive.size()] = static_cast<char>(random());
    }
    // The checksums fit again, so that the damage gets past them.
    for (std::size_t at = 0; round % 2 == 0 && at + 512 <= archive.size(); at += 512) {
      std::string block = archive.substr(at, 512);
      if (block.find("ustar") == std::string::npos) continue;
      set_checksum(block);
      archive.replace(at, 512, block);
    }
    archive.resize(random() % (archive.size() + 1));
    for (const TarMember& member : list(archive).members) {
      EXPECT_LE(member.offset, archive.size());
      EXPECT_LE(member.size, archive.size() - member.offset);
    }
  }
}

}  // namespace
}  // namespace foreload
