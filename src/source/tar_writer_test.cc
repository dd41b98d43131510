#include "source/tar_writer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "source/source_testing.h"
#include "source/tar_reader.h"

namespace foreload {
namespace {

std::string archive_of(const std::vector<std::string>& names, const std::string& content) {
  std::string archive;
  for (const std::string& name : names) archive += tar_file_header(name, content.size()) + padded(content);
  return archive + std::string(kTarEndBytes, '\0');
}

std::vector<std::string> awkward_names() {
  std::vector<std::string> names{"a.jpg", "tür/größe-日本.jpg", "bytes-\xff\xfe.jpg"};
  for (const std::size_t length : {99u, 100u, 101u, 254u, 255u, 256u, 257u, 300u, 4000u}) {
    names.push_back(std::string(length - 4, 'x') + ".jpg");
    names.push_back("d/" + std::string(length - 6, 'y') + ".jpg");
    names.push_back(std::string(length / 2, 'p') + "/" + std::string(length - length / 2 - 5, 'q') + ".jpg");
  }
  return names;
}

TEST(TarWriterTest, TheReaderFindsEveryNameAndSize) {
  const std::vector<std::string> names = awkward_names();
  const std::string content(700, 'c');
  const std::string archive = archive_of(names, content);
  TarReader reader(reader_over(archive), archive.size());
  for (const std::string& name : names) {
    const auto member = reader.next();
    ASSERT_TRUE(member.ok() && member->has_value()) << name;
    EXPECT_EQ((*member)->name, name);
    EXPECT_EQ((*member)->size, content.size());
    EXPECT_EQ(archive.substr((*member)->offset, content.size()), content);
  }
  EXPECT_FALSE(reader.next()->has_value());
  EXPECT_FALSE(reader.is_unmarked());
}

TEST(TarWriterTest, GnuTarAndPythonListTheSameNames) {
  const TestFolder folder;
  std::vector<std::string> names = awkward_names();
  names.erase(names.begin() + 2);  // tools may print bytes that are no UTF-8 in their own way
  const std::string path = folder.write("a.tar", archive_of(names, "content"));
  std::string expected;
  for (const std::string& name : names) expected += name + "\n";
  folder.write("expected", expected);
  run("tar --quoting-style=literal -tf " + path + " > " + folder.path("gnu") + " && cmp " + folder.path("gnu") + " " +
      folder.path("expected"));
  run("/usr/bin/python3 -c \"import tarfile; open('" + folder.path("python") +
      "', 'w').write(''.join(m.name + chr(10) for m in tarfile.open('" + path +
      "') if (m.mtime, m.uid, m.uname, m.mode, m.size) == (0, 0, 'root', 0o644, 7)))\" && cmp " +
      folder.path("python") + " " + folder.path("expected"));
}

TEST(TarWriterTest, SizesBeyondEightGiBAreTold) {
  for (const Bytes size : {(Bytes{1} << 33) - 1, Bytes{1} << 33, Bytes{1} << 40}) {
    const std::string header = tar_file_header("big.bin", size);
    EXPECT_EQ(header.size() % kTarBlockBytes, 0u);
    TarReader reader(reader_over(header), header.size() + tar_padded(size));
    const auto member = reader.next();
    ASSERT_TRUE(member.ok() && member->has_value());
    EXPECT_EQ((*member)->size, size);
    EXPECT_EQ((*member)->offset, header.size());
  }
}

TEST(TarWriterTest, PaddingFillsTheLastBlock) {
  EXPECT_EQ(tar_padded(0), 0u);
  EXPECT_EQ(tar_padded(1), 512u);
  EXPECT_EQ(tar_padded(512), 512u);
  EXPECT_EQ(tar_padded(513), 1024u);
}

}  // namespace
}  // namespace foreload
