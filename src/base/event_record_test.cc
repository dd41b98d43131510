#include "base/event_record.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <string>

#include "base/files.h"
#include "base/test_folder.h"
#include "base/thread.h"

namespace foreload {
namespace {

Event event_at(std::int64_t time) {
  return {.time = Time(time),
          .kind = EventKind::kReadDone,
          .thread = 0x1234,
          .epoch = 0x89abcdef,
          .position = 0x1122334455667788,
          .a = static_cast<std::uint64_t>(time),
          .b = ~0ull,
          .c = 0x0102030405060708};
}

bool same(const Event& x, const Event& y) {
  return x.time == y.time && x.kind == y.kind && x.thread == y.thread && x.epoch == y.epoch &&
         x.position == y.position && x.a == y.a && x.b == y.b && x.c == y.c;
}

TEST(EventRecordTest, ReturnsWhatWasAppendedInTheOrderOfTime) {
  const TestFolder folder;
  const std::string path = folder.path("events");
  auto record = EventRecord::create(path);
  ASSERT_TRUE(record.ok());
  for (const std::int64_t time : {30, -5, 20}) (*record)->append(event_at(time));
  EXPECT_TRUE((*record)->close().ok());
  const auto events = read_event_record(path);
  ASSERT_TRUE(events.ok());
  ASSERT_EQ(events->size(), 3u);
  EXPECT_TRUE(same((*events)[0], event_at(-5)));
  EXPECT_TRUE(same((*events)[1], event_at(20)));
  EXPECT_TRUE(same((*events)[2], event_at(30)));
}

TEST(EventRecordTest, TheFormatIsFixed) {
  const TestFolder folder;
  const std::string path = folder.path("events");
  (*EventRecord::create(path))->append(event_at(0x0a0b));
  const auto content = read_whole_file(path, 1000);
  ASSERT_TRUE(content.ok());
  const std::string header("foreload\x01\0\0\0\x30\0\0\0", 16);
  const std::string event(
      "\x0b\x0a\0\0\0\0\0\0"
      "\x05\0"
      "\x34\x12"
      "\xef\xcd\xab\x89"
      "\x88\x77\x66\x55\x44\x33\x22\x11"
      "\x0b\x0a\0\0\0\0\0\0"
      "\xff\xff\xff\xff\xff\xff\xff\xff"
      "\x08\x07\x06\x05\x04\x03\x02\x01",
      48);
  EXPECT_EQ(*content, header + event);
}

TEST(EventRecordTest, ManyThreadsLoseNothing) {
  const TestFolder folder;
  const std::string path = folder.path("events");
  constexpr std::uint64_t kEvents = 40'000;
  {
    auto record = EventRecord::create(path);
    ASSERT_TRUE(record.ok());
    parallel_for(4, kEvents, [&](std::uint64_t i) { (*record)->append(event_at(static_cast<std::int64_t>(i))); });
  }
  const auto events = read_event_record(path);
  ASSERT_TRUE(events.ok());
  ASSERT_EQ(events->size(), kEvents);
  for (std::uint64_t i = 0; i < kEvents; ++i)
    ASSERT_TRUE(same((*events)[i], event_at(static_cast<std::int64_t>(i)))) << i;
}

TEST(EventRecordTest, NothingIsAppendedAfterClose) {
  const TestFolder folder;
  const std::string path = folder.path("events");
  auto record = EventRecord::create(path);
  (*record)->append(event_at(1));
  EXPECT_TRUE((*record)->close().ok());
  (*record)->append(event_at(2));
  EXPECT_TRUE((*record)->close().ok());
  EXPECT_EQ(read_event_record(path)->size(), 1u);
}

TEST(EventRecordTest, WriteErrorsAreReportedByClose) {
  const TestFolder folder;
  auto record = EventRecord::create(folder.path("events"));
  ASSERT_TRUE(record.ok());
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit tiny = before;
  tiny.rlim_cur = 100;
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tiny), 0);
  for (int i = 0; i < 10; ++i) (*record)->append(event_at(i));
  const Status status = (*record)->close();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::kIo);
  EXPECT_NE(status.error().message.find(folder.path("events")), std::string::npos);
}

TEST(EventRecordTest, CreatingItWhereNothingCanBeIsAnError) {
  EXPECT_EQ(EventRecord::create("/nowhere/at/all").error().code, Code::kNotFound);
}

TEST(EventRecordTest, ATornTailAndHolesOfAKilledRunAreSkipped) {
  const TestFolder folder;
  const std::string path = folder.path("events");
  {
    auto record = EventRecord::create(path);
    for (int i = 1; i <= 3; ++i) (*record)->append(event_at(i));
  }
  std::string content = *read_whole_file(path, 1000);
  content = content.substr(0, 16 + 48) + std::string(48, '\0') + content.substr(16 + 2 * 48);
  content.resize(content.size() - 1);
  folder.write("events", content);
  const auto events = read_event_record(path);
  ASSERT_TRUE(events.ok());
  ASSERT_EQ(events->size(), 1u);
  EXPECT_TRUE(same(events->front(), event_at(1)));
}

TEST(EventRecordTest, OtherFilesAndDamageAreRefused) {
  const TestFolder folder;
  EXPECT_EQ(read_event_record(folder.path("missing")).error().code, Code::kNotFound);
  for (const std::string& content :
       {std::string(), std::string("foreload"), std::string(64, 'x'), std::string("foreload\x02\0\0\0\x30\0\0\0", 16),
        std::string("foreload\x01\0\0\0\x31\0\0\0", 16)}) {
    const auto events = read_event_record(folder.write("events", content));
    ASSERT_FALSE(events.ok());
    EXPECT_EQ(events.error().code, Code::kInvalid);
  }
  const std::string damaged = std::string("foreload\x01\0\0\0\x30\0\0\0", 16) + std::string(48, '\x7f');
  const auto events = read_event_record(folder.write("events", damaged));
  ASSERT_FALSE(events.ok());
  EXPECT_NE(events.error().message.find("offset 16"), std::string::npos) << events.error().message;
}

}  // namespace
}  // namespace foreload
