// Every call is a small state machine:
//   waiting → asked → writing … writing ⇄ pausing … → ending → ended
// with one operation of gRPC, or one alarm, under way at any time, so that it ends with the connection, its deadline or
// the server, whichever is first. A call needs no lock: it stays in its lane. A lane has one call waiting for a client,
// unless kMostCalls are at work: then clients wait, and their deadlines go on.
//
// Samples are taken in turns: what is here goes out, what is on its way is asked for again in the next turn, after a
// pause. Of a client that goes away meanwhile gRPC tells by an event of its own, and a call is gone only after that.
// A sample's bytes are given to gRPC as a slice that has the lease; gRPC drops it from any thread when they are sent.
#include "peers/peers_grpc_lane.h"

#include <grpcpp/alarm.h>
#include <grpcpp/security/auth_context.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "peers/peers_grpc_parts.h"
#include "peers/wire.h"

namespace foreload {
namespace {

constexpr std::size_t kMostCalls = 256;  // per lane
constexpr Duration kDeadlineSlack = std::chrono::seconds(5);
constexpr Duration kAnswerTime = std::chrono::milliseconds(100);  // that an answer may need to be back in time
constexpr Duration kFirstPause = std::chrono::milliseconds(2);
constexpr Duration kLongestPause = std::chrono::milliseconds(16);
constexpr const char* kSubjectNames = "x509_subject_alternative_name";  // as gRPC calls them

// A lease in the hands of gRPC.
class HeldLease {
 public:
  HeldLease(Lease lease, Tally& tally) : lease_(std::move(lease)), tally_(tally) { tally_.add(); }
  ~HeldLease() {
    lease_ = Lease();
    tally_.drop();
  }

 private:
  Lease lease_;
  Tally& tally_;
};

grpc::Slice slice_of(std::span<const std::byte> part, Lease lease, Tally& tally) {
  auto* const held = new HeldLease(std::move(lease), tally);
  return grpc::Slice(
      const_cast<std::byte*>(part.data()), part.size(), [](void* gone) { delete static_cast<HeldLease*>(gone); }, held);
}

bool is_ours(const grpc::AuthContext& authenticated) {
  const auto names = authenticated.FindPropertyValues(kSubjectNames);
  return std::find(names.begin(), names.end(), kPeerCertificateName) != names.end();
}

class Call {
 public:
  Call(Shop& shop, Lane& lane);

  // What a queue gives back.
  struct Event {
    Call& call;
    void (Call::*take)(bool ok);
  };

 private:
  enum class Stage { kWaiting, kAsked, kWriting, kPausing, kEnding, kEnded };

  void on_step(bool ok);  // what was under way is done
  void on_over(bool);     // it was answered, or its client is gone
  void on_client();
  void on_request();
  void begin(FetchRequest fetch);
  void go_on();
  bool take_next();
  void write_part();
  void pause();
  void end(const grpc::Status& status);
  void refuse(std::atomic<std::uint64_t>& count, const grpc::Status& status);
  void leave();
  grpc::Status refusal() const;  // OK: the call is served

  Shop& shop_;
  Lane& lane_;
  Event step_{*this, &Call::on_step};
  Event over_{*this, &Call::on_over};
  Stage stage_ = Stage::kWaiting;
  bool is_over_ = false;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_{&context_};
  grpc::ByteBuffer request_;
  FetchRequest fetch_;

  std::vector<std::uint32_t> turn_;  // indices of items
  std::size_t next_ = 0;             // in the turn
  std::vector<std::uint32_t> late_;  // the next turn
  Time patient_until_{};             // then what is late is absent
  Duration pause_ = kFirstPause;
  std::optional<grpc::Alarm> alarm_;

  std::uint32_t index_ = 0;  // of the sample
  PeerShelf::Taken sample_;
  bool is_cut_ = false;
  Bytes offset_ = 0;  // in the sample; 0: the next is to be taken
};

Call::Call(Shop& shop, Lane& lane) : shop_(shop), lane_(lane) {
  shop_.calls.add();
  context_.AsyncNotifyWhenDone(&over_);
  shop_.methods.RequestCall(&context_, &stream_, lane_.queue(), lane_.queue(), &step_);
}

void Call::on_step(bool ok) {
  if (stage_ == Stage::kWaiting) {
    lane_.on_client(ok);
    return ok ? on_client() : leave();  // without a client nothing can be over
  }
  if (stage_ == Stage::kEnding) {
    stage_ = Stage::kEnded;
    if (is_over_) leave();
    return;
  }
  if (!ok || is_over_) return end(grpc::Status::CANCELLED);
  if (stage_ == Stage::kAsked) return on_request();
  go_on();
}

void Call::on_over(bool) {
  is_over_ = true;
  if (stage_ == Stage::kPausing) alarm_->Cancel();
  if (stage_ == Stage::kEnded) leave();
}

void Call::leave() {
  Lane& lane = lane_;
  Shop& shop = shop_;
  delete this;
  lane.on_end();
  shop.calls.drop();
}

grpc::Status Call::refusal() const {
  if (shop_.authenticated && !is_ours(*context_.auth_context())) {
    return {grpc::StatusCode::UNAUTHENTICATED, "this certificate is not that of a peer"};
  }
  if (context_.method() != kFetchMethod && context_.method() != kHelloMethod) {
    return {grpc::StatusCode::UNIMPLEMENTED, "there is no such method"};
  }
  // gRPC ends calls at their deadline, but somebody may have set none.
  if (context_.deadline() > std::chrono::system_clock::now() + kLongestCall + kDeadlineSlack) {
    return {grpc::StatusCode::INVALID_ARGUMENT, "the deadline is too far away"};
  }
  return grpc::Status::OK;
}

void Call::on_client() {
  if (const grpc::Status refused = refusal(); !refused.ok()) {
    const bool stranger = refused.error_code() == grpc::StatusCode::UNAUTHENTICATED;
    return refuse(stranger ? shop_.refused.strangers : shop_.refused.malformed, refused);
  }
  stage_ = Stage::kAsked;
  stream_.Read(&request_, &step_);
}

void Call::on_request() {
  const auto bytes = to_bytes(request_);
  request_.Clear();
  if (context_.method() == kHelloMethod) {
    const auto hello = parse_hello(bytes);
    if (!hello) return refuse(shop_.refused.malformed, {grpc::StatusCode::INVALID_ARGUMENT, "this is no hello"});
    const HelloAnswer answer = shop_.greet(*hello);
    if (!answer.refusal.empty()) ++shop_.refused.hellos;
    stage_ = Stage::kEnding;
    return stream_.WriteAndFinish(to_buffer(encode(answer)), {}, grpc::Status::OK, &step_);
  }
  auto fetch = parse_fetch_request(bytes);
  if (!fetch) {
    return refuse(shop_.refused.malformed, {grpc::StatusCode::INVALID_ARGUMENT, "this is no request for samples"});
  }
  if (fetch->protocol != kPeerProtocol) {
    return refuse(shop_.refused.versions,
                  {grpc::StatusCode::UNIMPLEMENTED, "it speaks version " + std::to_string(kPeerProtocol) +
                                                        " of the protocol, and was asked in version " +
                                                        std::to_string(fetch->protocol)});
  }
  if (!shop_.shelf.knows(fetch->key)) {
    return refuse(shop_.refused.unknown, {kUnknownKeyStatus, "it has another dataset, plan or roster"});
  }
  begin(std::move(*fetch));
}

void Call::begin(FetchRequest fetch) {
  fetch_ = std::move(fetch);
  const auto left = std::chrono::duration_cast<Duration>(context_.deadline() - std::chrono::system_clock::now());
  patient_until_ = now() + std::min(shop_.patience, left - kAnswerTime);
  turn_.resize(fetch_.items.size());
  std::iota(turn_.begin(), turn_.end(), 0);
  shop_.shelf.expect(fetch_.key, fetch_.items);
  go_on();
}

void Call::go_on() {
  if (offset_ != 0 || take_next()) return write_part();
  if (late_.empty()) return end(grpc::Status::OK);
  pause();
}

// False: none of this turn is left that is here, or never will be.
bool Call::take_next() {
  using Kind = PeerShelf::Taken::Kind;
  while (next_ < turn_.size()) {
    index_ = turn_[next_++];
    sample_ = shop_.shelf.take(fetch_.key, fetch_.items[index_]);
    is_cut_ = sample_.kind == Kind::kHere && shop_.cutter.cut(fetch_.items[index_], sample_);
    if (sample_.kind != Kind::kLater || now() >= patient_until_) return true;
    late_.push_back(index_);
  }
  return false;
}

void Call::write_part() {
  SampleFrame frame{.index = index_};
  std::array<grpc::Slice, 2> slices;
  if (sample_.kind == PeerShelf::Taken::Kind::kHere) {
    const auto bytes = sample_.lease.bytes();
    frame = {.index = index_,
             .result = PeerResult::kHere,
             .is_cut = is_cut_,
             .length = bytes.size(),
             .offset = offset_,
             .hash = sample_.hash};
    const auto part = bytes.subspan(offset_, std::min<Bytes>(kPartBytes, bytes.size() - offset_));
    offset_ += part.size();
    const bool last = offset_ == bytes.size();
    if (last) offset_ = 0;
    Lease lease = last ? std::exchange(sample_.lease, Lease()) : sample_.lease.share();
    if (!part.empty()) slices[1] = slice_of(part, std::move(lease), shop_.leases);
  }
  const auto head = encode(frame);
  slices[0] = grpc::Slice(head.data(), head.size());
  const grpc::ByteBuffer message(slices.data(), frame.length != 0 ? 2 : 1);
  if (offset_ == 0 && next_ == turn_.size() && late_.empty()) {
    stage_ = Stage::kEnding;
    stream_.WriteAndFinish(message, {}, grpc::Status::OK, &step_);
  } else {
    stage_ = Stage::kWriting;
    stream_.Write(message, &step_);
  }
}

void Call::pause() {
  turn_.swap(late_);
  late_.clear();
  next_ = 0;
  const Duration length = std::clamp(patient_until_ - now(), Duration(0), pause_);
  pause_ = std::min(2 * pause_, kLongestPause);
  stage_ = Stage::kPausing;
  alarm_.emplace();
  alarm_->Set(lane_.queue(), gpr_time_from_nanos(length.count(), GPR_TIMESPAN), &step_);
}

void Call::refuse(std::atomic<std::uint64_t>& count, const grpc::Status& status) {
  ++count;
  end(status);
}

void Call::end(const grpc::Status& status) {
  stage_ = Stage::kEnding;
  stream_.Finish(status, &step_);
}

}  // namespace

Status Lane::start(Shop& shop) {
  shop_ = &shop;
  shop.calls.add();  // until the thread has one
  auto thread = Thread::start("fl-peer-serve", [this] {
    add_waiting();
    shop_->calls.drop();
    take_events();
  });
  if (!thread) {
    shop.calls.drop();
    return std::move(thread).error();
  }
  thread_.emplace(std::move(*thread));
  return {};
}

void Lane::stop() {
  queue_->Shutdown();
  if (!thread_) take_events();  // a queue must have been emptied
  thread_.reset();
}

void Lane::on_client(bool ok) {
  waiting_ = false;
  open_ = open_ && ok;
  if (ok) add_waiting();
}

void Lane::on_end() {
  --calls_;
  add_waiting();
}

void Lane::add_waiting() {
  if (waiting_ || !open_ || calls_ == kMostCalls) return;
  waiting_ = true;
  ++calls_;
  new Call(*shop_, *this);  // deletes itself
}

void Lane::take_events() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) {
    const Call::Event& event = *static_cast<Call::Event*>(tag);
    (event.call.*event.take)(ok);
  }
}

}  // namespace foreload
