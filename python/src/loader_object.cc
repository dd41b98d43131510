// Opening happens on a thread of its own, because building an index may take minutes and Ctrl-C should not have to wait
// for it; if it comes, that thread is left to finish and what it opened is closed again. While it waits for other
// hosts, which may take minutes, it is told to stop, and what it says is shown meanwhile.
#include "loader_object.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <system_error>
#include <thread>

#include "errors.h"
#include "options.h"
#include "watch.h"

namespace py = pybind11;

namespace foreload::python {
namespace {

constexpr std::chrono::milliseconds kLook{50};

struct Opening {
  std::mutex mutex;
  std::condition_variable done;
  std::optional<Result<Loader>> opened;  // guarded by mutex
  std::atomic<bool> left{false};         // nobody waits for it any more
};

void start_opening(const std::shared_ptr<Opening>& opening, LoaderOptions options) {
  const auto work = [opening, options = std::move(options)] {
    Result<Loader> opened = Loader::open(options);
    const std::lock_guard lock(opening->mutex);
    opening->opened.emplace(std::move(opened));
    opening->done.notify_one();
  };
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  try {
    std::thread(work).detach();
  } catch (const std::system_error&) {
    work();  // no thread to spare: then without Ctrl-C
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void show(Warnings& warnings) {
  const py::object warn = py::module_::import("foreload._arguments").attr("warn_once");
  for (const std::string& text : warnings.take()) warn(path_text(text));
}

// Raises what a signal's handler raises, or a warning that is to be an error.
void wait_for(Opening& opening, Warnings* shown) {
  for (;;) {
    const bool done = without_gil([&] {
      std::unique_lock lock(opening.mutex);
      return opening.done.wait_for(lock, kLook, [&] { return opening.opened.has_value(); });
    });
    if (done) return;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    if (shown != nullptr && shown->any()) show(*shown);
  }
}

bool is_main_thread() {
  return ::getpid() == ::gettid();
}

std::atomic<bool> g_interpreter_ends{false};

// Only daemon threads are left when the interpreter ends. One that waited for a batch ends without a word: it has
// nobody to report an exception to, but somebody may join it.
void end_thread_if_interpreter_ends() {
  if (!g_interpreter_ends || is_main_thread()) return;
  PyErr_SetNone(PyExc_SystemExit);
  throw py::error_already_set();
}

}  // namespace

void interpreter_ends() {
  g_interpreter_ends = true;
}

void Warnings::add(const std::string& text) {
  const std::lock_guard lock(mutex_);
  texts_.push_back(text);
  any_ = true;
}

std::vector<std::string> Warnings::take() {
  const std::lock_guard lock(mutex_);
  any_ = false;
  return std::exchange(texts_, {});
}

std::unique_ptr<LoaderObject> LoaderObject::open(const py::dict& given) {
  LoaderOptions options = read_options(given);
  const unsigned held_batches = options.held_batches;
  const auto warnings = std::make_shared<Warnings>();
  options.warn = [warnings](const std::string& text) { warnings->add(text); };
  const auto opening = std::make_shared<Opening>();
  options.stop = [opening] { return opening->left.load(); };
  Warnings* const shown = options.peers.empty() ? nullptr : warnings.get();
  start_opening(opening, std::move(options));
  try {
    wait_for(*opening, shown);
  } catch (...) {
    opening->left = true;
    throw;
  }
  Loader loader = value_or_raise(std::move(*opening->opened));
  return std::unique_ptr<LoaderObject>(new LoaderObject(std::move(loader), warnings, held_batches));
}

LoaderObject::LoaderObject(Loader loader, std::shared_ptr<Warnings> warnings, unsigned held_batches)
    : process_(::getpid()),
      loader_(std::move(loader)),
      warnings_(std::move(warnings)),
      held_batches_(held_batches),
      held_(std::make_shared<std::atomic<unsigned>>(0)),
      batches_(loader_->batches_per_epoch()) {
  note_place(*loader_);
}

LoaderObject::~LoaderObject() {
  close();
}

bool LoaderObject::forked() const {
  return ::getpid() != process_;
}

void LoaderObject::check_usable() const {
  if (forked()) {
    raise({Code::kCancelled, "this loader was opened by process " + std::to_string(process_) +
                                 " and can not be used in its forked child " + std::to_string(::getpid()) +
                                 ": open a loader in the child, or start it with spawn"});
  }
  if (closed_) raise({Code::kCancelled, "the loader was closed"});
}

void LoaderObject::note_place(const Loader& loader) {
  const std::lock_guard lock(place_mutex_);
  place_ = loader.position();
}

Result<std::optional<Batch>> LoaderObject::next_in_turn(bool watched) {
  const std::shared_lock open(life_);
  if (!loader_) return Error{Code::kCancelled, "the loader was closed"};
  const std::lock_guard lock(turn_);
  if (closed_) return Error{Code::kCancelled, "the loader was closed"};  // its interrupt went to whoever had the turn
  std::optional<Watched> guard;
  if (watched) guard.emplace(*loader_);
  Result<std::optional<Batch>> batch = loader_->next();
  if (batch) note_place(*loader_);
  return batch;
}

std::shared_ptr<Lease> LoaderObject::next() {
  const bool watched = is_main_thread();
  for (;;) {
    if (closed_) end_thread_if_interpreter_ends();
    check_usable();
    std::shared_ptr<Lease> lease;
    const Status delivered = without_gil([&]() -> Status {
      FORELOAD_ASSIGN(std::optional<Batch> batch, next_in_turn(watched));
      if (!batch) return {};
      lease = std::make_shared<Lease>(std::move(*batch), held_);
      if (*held_ > held_batches_) {
        lease->detach();
        ++copied_;
      }
      return {};
    });
    if (delivered) return lease;
    // The watch ended the wait: anything to do? If not, the wait goes on.
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    if (delivered.error().code != Code::kCancelled) raise(delivered.error());
  }
}

void LoaderObject::close() {
  if (closed_.exchange(true)) return;
  if (forked()) {
    loader_.reset();  // it knows that its threads are the parent's
    return;
  }
  PyThreadState* const state = PyGILState_Check() ? PyEval_SaveThread() : nullptr;
  loader_->interrupt();
  {
    const std::unique_lock alone(life_);
    loader_.reset();
  }
  if (state != nullptr) PyEval_RestoreThread(state);
}

std::string LoaderObject::position() {
  check_usable();
  const std::lock_guard lock(place_mutex_);
  return state_to_json(place_);
}

std::pair<Epoch, Position> LoaderObject::place() {
  const std::lock_guard lock(place_mutex_);
  return {place_.epoch, place_.position};
}

void LoaderObject::seek(const std::string& text) {
  const State state = value_or_raise(state_from_json(text));
  check(move([&](Loader& loader) { return loader.seek(state); }));
}

void LoaderObject::seek_epoch(Epoch epoch) {
  check(move([&](Loader& loader) { return loader.seek_epoch(epoch); }));
}

std::vector<Position> LoaderObject::positions(Epoch epoch, std::uint64_t step) {
  if (step >= batches_) raise({Code::kInvalid, "there is no step " + std::to_string(step) + " in an epoch"});
  return while_open([&](Loader& loader) { return loader.positions(epoch, step); });
}

}  // namespace foreload::python
