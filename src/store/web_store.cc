#include "store/web_store.h"

#include <string>
#include <utility>

#include "base/check.h"

namespace foreload {
namespace {

class WebStore final : public ObjectStore {
 public:
  explicit WebStore(std::string base) : base_(std::move(base)) {}

  std::string display(std::string_view key) const override { return url_of(key); }
  HttpRequest get(std::string_view key, Bytes offset, Bytes length) const override {
    return {"GET", url_of(key), {range_header(offset, length)}};
  }
  HttpRequest head(std::string_view key) const override { return {"HEAD", url_of(key), {}}; }

 private:
  std::string url_of(std::string_view key) const { return base_ + percent_encode(key, true); }

  const std::string base_;  // ends with a slash
};

}  // namespace

std::unique_ptr<ObjectStore> open_web_store(const Url& folder) {
  FORELOAD_CHECK(!folder.is_s3() && (folder.path.empty() || folder.path.back() == '/'), "a folder of a web server");
  return std::make_unique<WebStore>(folder.text());
}

}  // namespace foreload
