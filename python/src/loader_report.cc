// What a loader tells about itself, as dicts with the names of `foreload run --json`.
#include <pybind11/stl.h>

#include "array.h"
#include "base/hash.h"
#include "errors.h"
#include "loader_object.h"

namespace py = pybind11;
using namespace pybind11::literals;

namespace foreload::python {
namespace {

double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

double share_of(Duration part, Duration whole) {
  return whole.count() > 0 ? seconds(part) / seconds(whole) : 0;
}

py::dict epoch_dict(const EpochStats& stats) {
  const double fetch = share_of(stats.fetch_stall, stats.wall);
  const double prep = share_of(stats.prep_stall, stats.wall);
  return py::dict(
      "epoch"_a = stats.epoch, "samples"_a = stats.samples, "batches"_a = stats.batches,
      "seconds"_a = seconds(stats.wall),
      "samples_per_s"_a = stats.wall.count() > 0 ? static_cast<double>(stats.samples) / seconds(stats.wall) : 0.0,
      "bytes"_a = py::dict("memory"_a = stats.memory_bytes, "disk"_a = stats.disk_bytes, "peer"_a = stats.peer_bytes,
                           "source"_a = stats.source_bytes),
      "filled_bytes"_a = stats.filled_bytes, "shared_batches"_a = stats.shared_batches,
      "stall"_a = py::dict("total"_a = fetch + prep, "fetch"_a = fetch, "prep"_a = prep),
      "prep_seconds"_a = seconds(stats.prep_busy), "replaced"_a = stats.replaced, "damaged"_a = stats.damaged,
      "padded"_a = stats.padded);
}

py::dict quarantined_dict(const Quarantined& bad) {
  return py::dict("epoch"_a = bad.epoch, "position"_a = bad.position, "id"_a = bad.id, "key"_a = path_text(bad.key),
                  "reason"_a = path_text(bad.reason));
}

}  // namespace

py::object LoaderObject::next_capsules() {
  const std::shared_ptr<Lease> lease = next();
  if (!lease) return py::none();
  const unsigned notes = (has_warnings() ? kWarned : 0u) | (lease->copied() ? kCopied : 0u) |
                         (lease->step() + 1 == batches_ ? kLastStep : 0u);
  return py::make_tuple(Array{lease, lease->data()}.dlpack(), Array{lease, lease->labels()}.dlpack(), notes);
}

py::dict LoaderObject::stats() {
  const LoaderStats stats = while_open([](Loader& loader) { return loader.stats(); });
  py::list epochs;
  for (const EpochStats& epoch : stats.epochs) epochs.append(epoch_dict(epoch));
  py::list quarantine;
  for (const Quarantined& bad : stats.quarantine) quarantine.append(quarantined_dict(bad));
  return py::dict("epochs"_a = epochs, "quarantine"_a = quarantine, "memory_budget_bytes"_a = stats.memory_budget,
                  "cache"_a = py::dict("capacity_bytes"_a = stats.cache_capacity, "used_bytes"_a = stats.cached_bytes,
                                       "rewritten"_a = stats.rewritten),
                  "disk"_a = py::dict("capacity_bytes"_a = stats.disk_capacity, "used_bytes"_a = stats.disk_used,
                                      "damaged"_a = stats.disk_damaged),
                  "requests"_a = py::dict("sent"_a = stats.objects.requests, "retries"_a = stats.objects.retries,
                                          "hedges"_a = stats.objects.hedges, "throttled"_a = stats.objects.throttled,
                                          "bytes"_a = stats.objects.bytes),
                  "hosts"_a = stats.hosts, "ring_slots"_a = stats.ring_slots, "threads"_a = stats.threads,
                  "io"_a = stats.io, "held_batches"_a = held(), "copied_batches"_a = copied());
}

py::dict LoaderObject::describe() {
  struct About {
    std::string uri;
    std::uint64_t samples, bytes, fingerprint;
    std::vector<std::string> classes;
    TensorSpec spec;
  };
  const About about = while_open([](Loader& loader) {
    const Source& source = loader.source();
    return About{source.uri(),         source.size(),    source.total_bytes(),
                 source.fingerprint(), source.classes(), loader.sample_spec()};
  });
  py::list classes;
  for (const std::string& name : about.classes) classes.append(path_text(name));
  return py::dict("uri"_a = path_text(about.uri), "samples"_a = about.samples, "bytes"_a = about.bytes,
                  "fingerprint"_a = hex16(about.fingerprint), "classes"_a = classes,
                  "dtype"_a = dtype_name(about.spec.dtype), "shape"_a = py::tuple(py::cast(about.spec.shape)));
}

py::dict LoaderObject::locate(SampleId id) {
  struct Place {
    Extent extent;
    std::string key;
    std::int64_t label;
  };
  const Place place = value_or_raise(while_open([&](Loader& loader) -> Result<Place> {
    const Source& source = loader.source();
    if (id < source.size()) return Place{source.locate(id), std::string(source.key(id)), source.label(id)};
    return Error{Code::kInvalid,
                 "there is no sample " + std::to_string(id) + ": the dataset has " + std::to_string(source.size())};
  }));
  return py::dict("id"_a = id, "key"_a = path_text(place.key), "label"_a = place.label,
                  "file"_a = path_text(place.extent.display), "offset"_a = place.extent.offset,
                  "length"_a = place.extent.length);
}

py::tuple LoaderObject::batch_memory() {
  const std::span<const std::byte> memory = while_open([](Loader& loader) { return loader.batch_memory(); });
  return py::make_tuple(reinterpret_cast<std::uintptr_t>(memory.data()), memory.size());
}

void bind_loader(py::module_& module) {
  using Shared = std::shared_ptr<Lease>;
  const auto optional = [](bool there, const Shared& lease, ArraySpec (Lease::*array)() const) -> py::object {
    return there ? py::cast(Array{lease, (lease.get()->*array)()}) : py::none();
  };
  py::class_<Lease, Shared>(module, "Batch", "Prepared samples on lease from the loader's ring.")
      .def_property_readonly("data",
                             [](const Shared& self) {
                               return Array{self, self->data()};
                             })
      .def_property_readonly("labels",
                             [](const Shared& self) {
                               return Array{self, self->labels()};
                             })
      .def_property_readonly("ids",
                             [](const Shared& self) {
                               return Array{self, self->ids()};
                             })
      .def_property_readonly("positions",
                             [](const Shared& self) {
                               return Array{self, self->positions()};
                             })
      .def_property_readonly("offsets",
                             [=](const Shared& self) { return optional(self->ragged(), self, &Lease::offsets); })
      .def_property_readonly("other_labels",
                             [=](const Shared& self) { return optional(self->mixed(), self, &Lease::other_labels); })
      .def_property_readonly("own_shares",
                             [=](const Shared& self) { return optional(self->mixed(), self, &Lease::own_shares); })
      .def_property_readonly("epoch", &Lease::epoch)
      .def_property_readonly("step", &Lease::step)
      .def("__len__", &Lease::size);
  py::class_<LoaderObject>(module, "Loader", "The C++ loader; foreload.DataLoader is what people use.")
      .def(py::init(&LoaderObject::open), "options"_a)
      .def("next", &LoaderObject::next)
      .def("next_capsules", &LoaderObject::next_capsules)
      .def("close", &LoaderObject::close)
      .def_property_readonly("closed", &LoaderObject::closed)
      .def("position", &LoaderObject::position)
      .def_property_readonly("place", &LoaderObject::place)
      .def("seek", &LoaderObject::seek, "state"_a)
      .def("seek_epoch", &LoaderObject::seek_epoch, "epoch"_a)
      .def_property_readonly("batches_per_epoch", &LoaderObject::batches_per_epoch)
      .def("positions", &LoaderObject::positions, "epoch"_a, "step"_a)
      .def("stats", &LoaderObject::stats)
      .def("describe", &LoaderObject::describe)
      .def("locate", &LoaderObject::locate, "id"_a)
      .def("batch_memory", &LoaderObject::batch_memory)
      .def_property_readonly("has_warnings", &LoaderObject::has_warnings)
      .def("take_warnings",
           [](LoaderObject& self) {
             py::list texts;
             for (const std::string& text : self.take_warnings()) texts.append(path_text(text));
             return texts;
           })
      .def_property_readonly("held", &LoaderObject::held)
      .def_property_readonly("copied", &LoaderObject::copied);
}

}  // namespace foreload::python
