#include "store/s3_list.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "store/url.h"
#include "store/xml.h"

namespace foreload {
namespace {

constexpr std::size_t kLongestToken = 8192;
constexpr std::size_t kLongestEtag = 1024;

Error no_listing(const char* why) {
  return {Code::kInvalid, std::string("the answer is no listing of a bucket: ") + why};
}

// Takes the values of a listing as they come.
class ListParser {
 public:
  explicit ListParser(std::string_view xml) : reader_(xml) {}

  Result<ListPage> run();

 private:
  Status take(const std::string& value);
  Status take_of_object(const std::string& value);
  Status end_object();
  Status decode_keys();

  XmlReader reader_;
  ListPage page_;
  ListedObject object_;
  bool has_key_ = false;
  bool has_size_ = false;
  bool in_object_ = false;
  bool is_truncated_ = false;
  bool is_url_encoded_ = false;
};

Status ListParser::take_of_object(const std::string& value) {
  const std::string& name = reader_.name();
  if (name == "Key") {
    object_.key = value;
    has_key_ = true;
  } else if (name == "ETag") {
    if (value.size() > kLongestEtag) return no_listing("an ETag is too long");
    object_.etag = value;
  } else if (name == "Size") {
    const auto [stop, error] = std::from_chars(value.data(), value.data() + value.size(), object_.size);
    has_size_ = error == std::errc() && stop == value.data() + value.size();
    if (!has_size_) return no_listing("a size is no number");
  }
  return {};
}

Status ListParser::end_object() {
  if (!has_key_ || !has_size_ || object_.key.empty()) return no_listing("an object without key or size");
  if (page_.objects.size() >= kMostKeysInPage) return no_listing("more than 10,000 objects in one page");
  page_.objects.push_back(std::exchange(object_, {}));
  has_key_ = has_size_ = in_object_ = false;
  return {};
}

Status ListParser::take(const std::string& value) {
  const std::string& name = reader_.name();
  if (name == "IsTruncated") is_truncated_ = value == "true";
  if (name == "EncodingType") is_url_encoded_ = value == "url";
  if (name == "NextContinuationToken") {
    if (value.size() > kLongestToken) return no_listing("a token is too long");
    page_.next_token = value;
  }
  return {};
}

// As in forms: a blank may be written as +.
Status ListParser::decode_keys() {
  for (ListedObject& object : page_.objects) {
    if (is_url_encoded_) {
      std::replace(object.key.begin(), object.key.end(), '+', ' ');
      auto decoded = percent_decode(object.key);
      if (!decoded) return no_listing("a key has an escape that is none");
      object.key = *std::move(decoded);
    }
    if (object.key.empty() || object.key.size() > kLongestKey) return no_listing("a key is empty or too long");
  }
  return {};
}

Result<ListPage> ListParser::run() {
  for (;;) {  // ends: the reader goes forward
    FORELOAD_ASSIGN(const XmlReader::Event event, reader_.next());
    if (event == XmlReader::Event::kDone) break;
    const bool starts = event == XmlReader::Event::kStart;
    if (starts && reader_.depth() == 1 && reader_.name() != "ListBucketResult") {
      return no_listing("it has another kind of content");
    }
    if (starts && reader_.depth() == 2) in_object_ = reader_.name() == "Contents";
    if (starts) continue;
    if (in_object_ && reader_.depth() == 2) FORELOAD_TRY(take_of_object(reader_.value()));
    if (reader_.depth() != 1) continue;
    FORELOAD_TRY(in_object_ ? end_object() : take(reader_.value()));
  }
  FORELOAD_TRY(decode_keys());
  if (!is_truncated_) page_.next_token.clear();
  if (is_truncated_ && page_.next_token.empty()) return no_listing("it goes on, but does not say where");
  return std::move(page_);
}

}  // namespace

Result<ListPage> parse_list_page(std::string_view xml) {
  return ListParser(xml).run();
}

std::optional<S3Error> parse_s3_error(std::string_view xml) {
  XmlReader reader(xml);
  S3Error found;
  for (;;) {  // ends: the reader goes forward
    const auto event = reader.next();
    if (!event) return std::nullopt;
    if (*event == XmlReader::Event::kDone) break;
    const bool starts = *event == XmlReader::Event::kStart;
    if (starts && reader.depth() == 1 && reader.name() != "Error") return std::nullopt;
    if (starts || reader.depth() != 1) continue;
    if (reader.name() == "Code") found.code = reader.value();
    if (reader.name() == "Message") found.message = reader.value();
    if (reader.name() == "Region") found.region = reader.value();
  }
  if (found.code.empty()) return std::nullopt;
  return found;
}

}  // namespace foreload
