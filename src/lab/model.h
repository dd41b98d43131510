// The model of a job: what a machine and a dataset were measured to give, applied to a setup that may differ from the
// one that was measured. Pure; see stall_model.h for the arithmetic and docs/analyze.md for the assumptions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "foreload/transform.h"
#include "lab/measured.h"
#include "lab/prep_curve.h"
#include "lab/stall_model.h"

namespace foreload {

enum class Form { kRaw, kRecord, kCropAddressable, kArrays };
const char* form_name(Form form);  // "raw", …

enum class CachePolicy {
  kNeverEvict,  // also the other policies of the loader: in epochs that read all once, they keep as much
  kLru,
  kPageCache,  // nothing but the system's
};

// A job, as far as its speed depends on it. Everything that is "of a host" is equal on all hosts.
struct JobSetup {
  unsigned hosts = 1;
  unsigned accelerators = 1;  // of a host
  unsigned cores = 1;         // of a host
  unsigned threads = 1;       // of a host: prep
  Bytes cache = 0;            // of a host: bytes of samples that its learners find in memory
  unsigned caches = 1;        // of a host: so many learners keep the same samples, each for itself
  Bytes page_cache = 0;       // of a host: memory beside it that keeps files; 0 where reads go past it
  Bytes disk = 0;             // of a host: bytes of samples that the disk tier holds
  Bytes disk_before = 0;      // of them, before the first epoch
  bool partitioned = false;   // hosts give each other what they have
  std::uint64_t batch = 1;    // samples per accelerator and step
  CachePolicy policy = CachePolicy::kNeverEvict;
  Form form = Form::kRaw;
  DType dtype = DType::kF32;
  std::optional<double> storage{};  // bytes per second of a host, instead of what was measured

  bool operator==(const JobSetup&) const = default;
};

// What the same samples cost in one form.
struct FormCost {
  double cpu_seconds = 0;   // per sample: reading and prep
  double stored_bytes = 0;  // per sample
  std::vector<ReadAt> read_share{};

  bool known() const { return cpu_seconds > 0; }
};

struct FormCosts {
  FormCost raw;
  FormCost record;
  FormCost crop_addressable;

  const FormCost* find(Form form) const;  // null: not known
};

enum class Epochs { kFirst, kLater };
enum class End { kValue, kLow, kHigh };  // of what is known of a figure

// What a miss reads of a sample from storage of this rate, between the rates for which it is known.
Figure read_share_at(std::span<const ReadAt> known, double bytes_per_s);

// Where the samples of a host come from; the shares add up to 1.
struct Shares {
  double memory = 0;
  double peers = 0;
  double disk = 0;
  double page_cache = 0;
  double storage = 0;
};
// The low end of the page cache is LRU, the high end that it evicts nothing.
Shares shares(const JobSetup& setup, double dataset_bytes, Epochs epochs, End end = End::kValue);

struct Prediction {
  Stalls stalls;     // rates are those of the whole job
  double low = 0;    // of the rate, from the low ends of all figures
  double high = 0;   // from their high ends
  double fetch = 0;  // what each could do
  double prep = 0;
  double accelerator = 0;
  std::string assumes{};  // what it rests on that was not measured; empty: nothing
};

class Model {
 public:
  // `here` is the setup that `measured` was measured with. Forms may be unknown.
  Model(Measured measured, const JobSetup& here, const FormCosts& forms = {});

  const Measured& measured() const { return measured_; }
  const JobSetup& here() const { return here_; }
  const PrepCurve& prep() const { return prep_; }
  // The same model of other figures, such as those of a part of the dataset.
  Model of(Measured measured) const { return Model(std::move(measured), here_, forms_); }
  double mean_bytes() const;
  Figure storage() const { return best_storage(measured_.storage); }  // bytes per second of one host

  // Nothing: something that it would need was not measured.
  std::optional<Prediction> predict(const JobSetup& setup, Epochs epochs = Epochs::kLater) const;
  // Whether anything is known of this form, or type, when it is not the one here.
  bool knows(Form form) const;
  bool knows(DType dtype) const;

 private:
  struct Rates {
    double fetch = 0;
    double prep = 0;
    double accelerator = 0;
  };
  std::optional<Rates> rates(const JobSetup& setup, Epochs epochs, End end) const;
  std::optional<double> fetch(const JobSetup& setup, const Shares& from, Epochs epochs, End end) const;
  double prep_rate(const JobSetup& setup, double missed, End end) const;
  double storage_read(const JobSetup& setup, double bytes_per_s, Epochs epochs, End end) const;
  double memory_rate(End end) const;
  double prep_cost(const JobSetup& setup) const;
  double output_cost(DType dtype) const;

  Measured measured_;
  JobSetup here_;
  FormCosts forms_;
  PrepCurve prep_;
};

}  // namespace foreload
