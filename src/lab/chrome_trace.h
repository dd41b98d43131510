// ChromeTrace: event records as the JSON that Perfetto and chrome://tracing open. A process per record; in it a track
// for the consumer, the fetcher, every prep thread, every ring slot, and as many for reads as were under way at once.
// Spans of one track follow each other or nest, whatever the record says. Written as the events are walked over: memory
// does not grow with them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/event_record.h"
#include "foreload/result.h"
#include "foreload/types.h"

namespace foreload {

class ChromeTrace {
 public:
  using Sink = std::function<Status(std::string_view)>;

  explicit ChromeTrace(Sink sink) : sink_(std::move(sink)) {}

  // `name`: of the process. Times are shown since `zero`. REQUIRES: `events` are in the order of time.
  void add(std::span<const Event> events, std::string_view name, Time zero);
  // Ends the text; the first error of the sink, if there was one.
  Status finish();

  std::uint64_t spans() const { return spans_; }
  std::uint64_t left_out() const { return left_out_; }  // reads and batches for which there was no track

 private:
  friend class TraceProcess;
  void put(std::string_view event);  // one object of the list
  void flush();

  Sink sink_;
  Status status_;
  std::string buffer_ = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  bool any_ = false;
  unsigned processes_ = 0;
  std::uint64_t spans_ = 0;
  std::uint64_t left_out_ = 0;
};

}  // namespace foreload
