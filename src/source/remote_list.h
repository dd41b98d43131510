// Lists of shards as URLs: "https://host/train-{000..009}.tar", "s3://bucket/path/*.tar", or one object.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "foreload/result.h"
#include "source/dataset.h"
#include "store/url.h"

namespace foreload {

// Without kind, root or store set up by others: a place whose store reads below `folder`, and its identity begun with
// where that is. S3 credentials come from the environment.
Result<Place> open_remote_place(const Url& folder);

bool is_remote_list(const std::string& url);  // braces or * ? [ behind the host

struct RemoteList {
  Place place;
  std::string pattern;              // what follows the place's folder, as it was written
  std::vector<std::string> shards;  // keys in the place's store; in list order, each glob sorted by bytes
};

// kInvalid: patterns other than braces are for s3 only, because web servers can not be listed. kNotFound: nothing fits.
Result<RemoteList> expand_remote(const std::string& url);

}  // namespace foreload
