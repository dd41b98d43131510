// Company: the jobs of a host whose streams have the same batches: same dataset, chain, seed, global batch and rank.
// One of them feeds its ring and the others read there; who finds none that has the batch it needs feeds its own ring,
// for others to find. All decisions of a job to go on elsewhere come here. The consumer's thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "foreload/loader.h"
#include "host/member.h"
#include "host/stream_card.h"
#include "loader/lease_desk.h"
#include "plan/stream.h"
#include "prep/chain.h"

namespace foreload {

// Hash of all that the batches of a stream depend on.
std::array<std::uint64_t, 2> content_of(const LoaderOptions& options, const Source& source, const Stream& stream,
                                        const ChainOptions& chain);

class Company {
 public:
  // `own`: the stream of this loader, which `card` describes.
  Company(std::shared_ptr<Member> member, ObjectId own, const StreamCard& card);

  struct Joined {
    std::shared_ptr<LeaseDesk> desk;
    std::uint64_t number = 0;  // the batch from which on
  };
  // A ring where batch `number` is or will be soon. To `follow`: or else one where an epoch of so many batches begins
  // before batch `end`. Nothing: the own ring has begun instead.
  struct Wanted {
    std::uint64_t number = 0;
    bool follow = false;
    std::uint64_t epoch_batches = 1;
    std::uint64_t end = 0;  // 0: none
  };
  std::optional<Joined> join(const Wanted& wanted, Ring& own, const TensorSpec& spec);
  void leave();  // the own ring is not fed any more

 private:
  Result<std::shared_ptr<LeaseDesk>> read(ObjectId object, const TensorSpec& spec);
  static std::optional<std::uint64_t> attach(LeaseDesk& desk, const Wanted& wanted);

  std::shared_ptr<Member> member_;
  ObjectId own_;
  StreamCard card_;
};

}  // namespace foreload
