#include "stream_hash.h"

#include "base/hash.h"

namespace foreload {

StreamHash hash_batch(const Batch& batch, Position first) {
  StreamHash hash;
  const Bytes size = batch.size() == 0 ? 0 : batch.sample_spec().bytes();
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const Position position = first + i;
    hash.order += hash_bytes(std::as_bytes(batch.ids().subspan(i, 1)), position);
    Hasher content(position);
    content.add_raw(batch.data().subspan(i * size, size));
    content.add_raw(std::as_bytes(batch.labels().subspan(i, 1)));
    hash.content += content.value();
  }
  return hash;
}

}  // namespace foreload
