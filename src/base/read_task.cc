// start → kOpen → opened → examine (fstat) → kRead → read_returned → … → kFinished.
//
// With O_DIRECT a piece covers whole blocks around what is missing and lands in the bounce buffer:
//
//        from = ⌊offset + done⌋        offset + done                      end        ⌈end⌉
//          |-------------------------------|################################|----------|
//
// A block read that ends before it has brought anything new means that the file ended.
#include "base/read_task.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/open_below.h"

namespace foreload {

namespace {

constexpr Bytes kBlock = 4096;
constexpr Bytes kLongestPiece = 1_GiB;  // results are ints, and the kernel reads less than 2 GiB at once
constexpr unsigned kMaxAttempts = 64;   // answers of "try again" in a row

Bytes block_down(Bytes bytes) {
  return bytes / kBlock * kBlock;
}

Bytes block_up(Bytes bytes) {
  return block_down(bytes + kBlock - 1);
}

bool clear_flag(int fd, int flag) {
  const int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && fcntl(fd, F_SETFL, flags & ~flag) == 0;
}

}  // namespace

ReadTask::Next ReadTask::start(const ReadJob& job) {
  job_ = job;
  result_ = {};
  result_.tag = job.tag;
  done_ = 0;
  attempts_ = 0;
  direct_ = options_->direct;
  if (job.fd < 0) return next_ = Next::kOpen;
  fd_ = job.fd;
  if (direct_) {
    const int flags = fcntl(fd_, F_GETFL);
    direct_ = flags >= 0 && (flags & O_DIRECT) != 0;
  }
  return examine();
}

ReadTask::Next ReadTask::opened(int result) {
  if (result >= 0) {
    owned_ = Descriptor(result);
    fd_ = result;
    attempts_ = 0;
    return examine();
  }
  switch (-result) {
    case EXDEV:
    case ELOOP:
    case ENXIO:  // a socket, or a device without a driver
      return finish(ReadOutcome::kRefused, -result);
    case EINVAL:  // a file system without O_DIRECT
      if (!direct_) break;
      direct_ = false;
      return next_;
    case EINTR:
    case EAGAIN:  // a directory was renamed during the walk
      if (++attempts_ >= kMaxAttempts) break;
      return next_;
    default:
      break;
  }
  return finish(ReadOutcome::kFailed, -result);
}

ReadTask::Next ReadTask::examine() {
  struct stat status {};
  if (fstat(fd_, &status) != 0) return finish(ReadOutcome::kFailed, errno);
  if (!S_ISREG(status.st_mode)) return finish(ReadOutcome::kRefused);
  result_.found = stamp_from(status);
  const bool holds_range = job_.offset <= result_.found.size && job_.into.size() <= result_.found.size - job_.offset;
  if ((job_.stamped && result_.found != job_.expect) || !holds_range) return finish(ReadOutcome::kChanged);
  if (job_.into.empty()) return finish(ReadOutcome::kDone);
  if (direct_ && !prepare_bounce()) return finish(ReadOutcome::kFailed, ENOMEM);
  return next_ = Next::kRead;
}

bool ReadTask::prepare_bounce() {
  const Bytes most = block_up(options_->bounce_bytes) + 2 * kBlock;
  const Bytes wanted = std::min({most, block_up(end()) - block_down(job_.offset), kLongestPiece});
  if (bounce_ != nullptr && wanted <= bounce_size_) return true;  // fresh memory would cost as much as the read
  bounce_.reset();
  bounce_.reset(static_cast<std::byte*>(std::aligned_alloc(kBlock, wanted)));
  bounce_size_ = bounce_ != nullptr ? wanted : 0;
  return bounce_ != nullptr;
}

ReadTask::Piece ReadTask::piece() {
  const Bytes at = job_.offset + done_;
  if (!direct_) {
    const Bytes length = std::min(job_.into.size() - done_, kLongestPiece);
    return {fd_, job_.into.data() + done_, static_cast<unsigned>(length), at};
  }
  const Bytes from = block_down(at);
  return {fd_, bounce_.get(), static_cast<unsigned>(std::min<Bytes>(bounce_size_, block_up(end()) - from)), from};
}

ReadTask::Next ReadTask::read_returned(int result) {
  if (options_->fault != nullptr) result = options_->fault->apply(result);
  if (result < 0) return failed_read(-result);
  attempts_ = 0;
  const Bytes at = job_.offset + done_;
  const Bytes from = direct_ ? block_down(at) : at;
  const Bytes until = std::min(from + static_cast<Bytes>(result), end());
  if (until <= at) return ended_early();
  if (direct_) std::memcpy(job_.into.data() + done_, bounce_.get() + (at - from), until - at);
  done_ = until - job_.offset;
  return done_ == job_.into.size() ? finish(ReadOutcome::kDone) : next_;
}

ReadTask::Next ReadTask::failed_read(int error_number) {
  if (error_number == EINVAL && direct_ && clear_flag(fd_, O_DIRECT)) {
    direct_ = false;  // blocks larger than ours
    return next_;
  }
  const bool again = error_number == EINTR || error_number == EAGAIN;
  if (!again || ++attempts_ >= kMaxAttempts) return finish(ReadOutcome::kFailed, error_number);
  // Older kernels take O_NONBLOCK, which only opening needs, seriously when io_uring reads a regular file.
  if (error_number == EAGAIN && !clear_flag(fd_, O_NONBLOCK)) return finish(ReadOutcome::kFailed, error_number);
  return next_;
}

ReadTask::Next ReadTask::ended_early() {
  struct stat status {};
  if (fstat(fd_, &status) == 0) result_.found = stamp_from(status);
  return finish(ReadOutcome::kChanged);
}

ReadTask::Next ReadTask::finish(ReadOutcome outcome, int error_number) {
  result_.outcome = outcome;
  result_.error_number = error_number;
  drop();
  return next_ = Next::kFinished;
}

void ReadTask::drop() {
  owned_ = Descriptor();
  fd_ = -1;
}

}  // namespace foreload
