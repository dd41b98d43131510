// LoaderObject: a Loader as Python holds it. Every wait happens without the interpreter's lock; calls from several
// threads take turns; warnings of the loader are kept until the calling thread asks for them, so that no other thread
// touches a Python object.
#pragma once

#include <pybind11/pybind11.h>
#include <sys/types.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <utility>
#include <vector>

#include "errors.h"
#include "foreload/loader.h"
#include "lease.h"

namespace foreload::python {

// Warnings on their way from any thread to the one that shows them.
class Warnings {
 public:
  void add(const std::string& text);
  std::vector<std::string> take();
  bool any() const { return any_; }

 private:
  std::mutex mutex_;
  std::vector<std::string> texts_;
  std::atomic<bool> any_{false};
};

// What next_capsules() has to say beside the arrays; a sum of these.
enum Note : unsigned {
  kWarned = 1,    // there are warnings to show
  kCopied = 2,    // this batch is a copy
  kLastStep = 4,  // of the epoch
};

class LoaderObject {
 public:
  // Raises what Loader::open reports; Ctrl-C ends the wait for it.
  static std::unique_ptr<LoaderObject> open(const pybind11::dict& options);
  ~LoaderObject();

  // The next batch, or null at the epoch's end. More than `held_batches` on lease: this one is a copy.
  std::shared_ptr<Lease> next();
  // The same in one call, for the usual case: (data, labels, notes) with both arrays as DLPack capsules.
  pybind11::object next_capsules();
  void close();
  bool closed() const { return closed_; }

  // Behind the last batch handed out, also while another thread waits for the next: the whole state, or what changes in
  // it, which is known even when the loader was closed.
  std::string position();
  std::pair<Epoch, Position> place();
  void seek(const std::string& state);
  void seek_epoch(Epoch epoch);

  std::uint64_t batches_per_epoch() const { return batches_; }
  std::vector<Position> positions(Epoch epoch, std::uint64_t step);
  pybind11::dict stats();
  pybind11::dict describe();
  pybind11::dict locate(SampleId id);
  pybind11::tuple batch_memory();

  bool has_warnings() const { return warnings_->any(); }
  std::vector<std::string> take_warnings() { return warnings_->take(); }
  unsigned held() const { return *held_; }
  std::uint64_t copied() const { return copied_; }

 private:
  LoaderObject(Loader loader, std::shared_ptr<Warnings> warnings, unsigned held_batches);
  bool forked() const;
  void check_usable() const;
  Result<std::optional<Batch>> next_in_turn(bool watched);
  void note_place(const Loader& loader);
  // Keeps the loader from being closed, and never holds the interpreter's lock meanwhile.
  template <typename Work>
  auto while_open(Work work) {
    check_usable();
    auto result = without_gil([&] {
      const std::shared_lock open(life_);
      return loader_ ? std::optional(work(*loader_)) : std::nullopt;
    });
    if (!result) raise({Code::kCancelled, "the loader was closed"});
    return std::move(*result);
  }
  // Moves the loader, in turn with other threads.
  template <typename Work>
  Status move(Work work) {
    return while_open([&](Loader& loader) {
      const std::lock_guard lock(turn_);
      Status moved = work(loader);
      if (moved) note_place(loader);
      return moved;
    });
  }

  pid_t process_;
  std::shared_mutex life_;  // shared by those who use the loader; whoever closes it has it alone
  std::mutex turn_;         // one thread at a time moves the loader
  std::mutex place_mutex_;  // held for a moment only
  State place_;             // guarded by place_mutex_
  std::optional<Loader> loader_;
  std::atomic<bool> closed_{false};
  std::shared_ptr<Warnings> warnings_;
  unsigned held_batches_;
  HeldCount held_;
  std::atomic<std::uint64_t> copied_{0};
  std::uint64_t batches_ = 0;
};

// To be called when the interpreter is about to end, before the loaders are closed.
void interpreter_ends();

void bind_loader(pybind11::module_& module);

}  // namespace foreload::python
