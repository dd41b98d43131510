// Event records are untrusted: whatever the bytes are, reading ends with events or an error; the story of them stays in
// bounds, and their Chrome trace is JSON.
#include "base/event_record.h"

#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "lab/chrome_trace.h"
#include "lab/learners.h"
#include "lab/run_story.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto events = foreload::parse_event_record(std::as_bytes(std::span(data, size)), "record");
  if (!events || events->empty()) return 0;
  const foreload::RunStory story = foreload::story_of(*events, {.steps = true});
  if (!(story.waits.total() <= story.seconds * 1.001 + 1e-9)) std::abort();
  const foreload::RunStory twice[] = {story, story};
  if (foreload::compare_learners(twice).lost() > 1e-6 * (1 + story.seconds)) std::abort();
  std::string text;
  foreload::ChromeTrace trace([&](std::string_view part) {
    text += part;
    return foreload::Status();
  });
  trace.add(*events, "record", story.begin);
  if (!trace.finish().ok() || !nlohmann::json::accept(text)) std::abort();
  return 0;
}
