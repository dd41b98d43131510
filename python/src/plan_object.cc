// The pure part: order and assignment, for datasets whose samples Python makes. The arithmetic is the loader's own.
#include "plan_object.h"

#include <fmt/format.h>

#include "base/hash.h"
#include "errors.h"
#include "foreload/schedule.h"
#include "loader/order.h"
#include "options.h"
#include "plan/assignment.h"

namespace py = pybind11;
using namespace pybind11::literals;

namespace foreload::python {
namespace {

class Plan {
 public:
  Plan(const Schedule& schedule, const JobShape& shape)
      : schedule_(schedule), assignment_(shape), hash_(plan_hash(schedule.options(), shape)) {}

  SampleId sample_at(Epoch epoch, Position position) const {
    return schedule_.sample_at(epoch, assignment_.source_position(bounded(position)));
  }
  SampleId substitute(Epoch epoch, Position position, unsigned k) const {
    return schedule_.substitute(epoch, bounded(position), k);
  }
  py::tuple share(std::uint64_t step, std::uint32_t rank) const {
    if (step >= assignment_.batches_per_epoch() || rank >= assignment_.shape().world) {
      throw py::index_error(fmt::format("there is no step {} of rank {}", step, rank));
    }
    const Share share = assignment_.share(step, rank);
    return py::make_tuple(share.first, share.count);
  }
  std::uint64_t batches_per_epoch() const { return assignment_.batches_per_epoch(); }
  std::uint64_t positions_per_epoch() const { return assignment_.positions_per_epoch(); }
  std::uint64_t samples_per_epoch() const { return schedule_.size(); }
  std::string hash() const { return hex16(hash_); }
  // Raises when the state `saved` does not continue the job that stands at `here`.
  void check_state(const std::string& saved, const std::string& here) const {
    check(foreload::check_state(value_or_raise(state_from_json(saved)), value_or_raise(state_from_json(here)),
                                assignment_, schedule_.options()));
  }

 private:
  Position bounded(Position position) const {
    if (position >= assignment_.positions_per_epoch()) {
      throw py::index_error(
          fmt::format("position {} lies behind the epoch's end {}", position, assignment_.positions_per_epoch()));
    }
    return position;
  }

  Schedule schedule_;
  SliceAssignment assignment_;
  std::uint64_t hash_;
};

// Of the options of a loader those that say what stands where, and the number of samples.
Plan make_plan(const py::dict& given) {
  py::dict rest = given.attr("copy")();
  const auto samples = rest.attr("pop")("samples").cast<std::uint64_t>();
  const LoaderOptions options = read_options(rest);
  if (samples == 0 || options.global_batch == 0 || options.world == 0) {
    raise({Code::kInvalid, "a plan needs samples, a batch and a world of at least 1"});
  }
  check(check_order(options));
  const Schedule schedule = value_or_raise(make_schedule(options, samples));
  return {schedule,
          {.samples = schedule.size(),
           .global_batch = options.global_batch,
           .world = options.world,
           .last_batch = options.last_batch}};
}

}  // namespace

void bind_plan(py::module_& module) {
  py::class_<Plan>(module, "Plan", "Which sample stands at which position, and which positions a rank takes.")
      .def(py::init(&make_plan), "options"_a)
      .def("sample_at", &Plan::sample_at, "epoch"_a, "position"_a)
      .def("substitute", &Plan::substitute, "epoch"_a, "position"_a, "k"_a)
      .def("share", &Plan::share, "step"_a, "rank"_a)
      .def("check_state", &Plan::check_state, "saved"_a, "here"_a)
      .def_property_readonly("batches_per_epoch", &Plan::batches_per_epoch)
      .def_property_readonly("positions_per_epoch", &Plan::positions_per_epoch)
      .def_property_readonly("samples_per_epoch", &Plan::samples_per_epoch, "Before anything is dropped or padded.")
      .def_property_readonly("hash", &Plan::hash);
}

}  // namespace foreload::python
