#include "stream_hash.h"

#include "base/hash.h"

namespace foreload {

StreamHash hash_batch(const Batch& batch, std::span<const Position> positions) {
  StreamHash hash;
  const bool ragged = !batch.offsets().empty();
  const Bytes size = batch.size() == 0 ? 0
                     : ragged          ? dtype_size(batch.sample_spec().dtype)
                                       : batch.sample_spec().bytes();
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const Position position = positions[i];
    hash.order += hash_bytes(std::as_bytes(batch.ids().subspan(i, 1)), position);
    Hasher content(position);
    const std::uint64_t start = ragged ? batch.offsets()[i] : i;
    const std::uint64_t end = ragged ? batch.offsets()[i + 1] : i + 1;
    content.add_raw(batch.data().subspan(start * size, (end - start) * size));
    content.add_raw(std::as_bytes(batch.labels().subspan(i, 1)));
    if (!batch.mixes().empty()) {
      const Mix& mix = batch.mixes()[i];
      content.add_raw(std::as_bytes(std::span(&mix.other_label, 1)))
          .add_raw(std::as_bytes(std::span(&mix.own_share, 1)));
    }
    hash.content += content.value();
  }
  return hash;
}

}  // namespace foreload
