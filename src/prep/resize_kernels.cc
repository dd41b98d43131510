// The plain loops. The sums can not overflow: weights are at least 0 and add up to about 2^22, pixels are
// below 2^8. The rounded weights of a place may add up to slightly more than one, hence the upper bound.
#include "prep/resize_kernels.h"

#include <algorithm>

namespace foreload {

namespace {

constexpr std::int32_t kHalf = 1 << (kWeightBits - 1);
constexpr std::size_t kChannels = 3;

std::uint32_t pixel(std::int32_t sum) {
  return static_cast<std::uint32_t>(std::min(sum >> kWeightBits, 255));
}

void plain_row(const RowResize& job) {
  const RowWeights& weights = job.weights;
  for (std::size_t place = 0; place < weights.first.size(); ++place) {
    const std::uint8_t* in = job.in + weights.first[place];
    const std::uint32_t* words = weights.words.data() + weights.index(place);
    std::int32_t sums[kChannels] = {kHalf, kHalf, kHalf};
    for (std::uint32_t group = 0; group < weights.groups; ++group, words += weights.lanes) {
      for (std::uint32_t tap = 0; tap < RowWeights::kGroup; ++tap, in += kPixelBytes) {
        const std::int32_t weight = RowWeights::weight(words, tap);
        for (std::size_t channel = 0; channel < kChannels; ++channel) sums[channel] += in[channel] * weight;
      }
    }
    for (std::size_t channel = 0; channel < kChannels; ++channel) {
      job.out.data[channel * job.out.stride + place] = pixel(sums[channel]) * kSpread;
    }
  }
}

void plain_split(const RowSplit& job) {
  for (std::size_t i = 0; i < job.width; ++i) {
    const std::uint8_t* in = job.in + (job.mirrored ? job.width - 1 - i : i) * kPixelBytes;
    for (std::size_t channel = 0; channel < kChannels; ++channel) {
      job.out.data[channel * job.out.stride + i] = in[channel] * kSpread;
    }
  }
}

// Calls put(i, value) for every pixel i of a channel.
template <typename Put>
void column_channel(const ColumnResize& job, std::size_t channel, Put put) {
  constexpr std::size_t kBlock = 64;
  for (std::size_t first = 0; first < job.width; first += kBlock) {
    const std::size_t count = std::min(kBlock, job.width - first);
    std::int32_t sums[kBlock];
    std::fill_n(sums, count, kHalf);
    for (std::uint32_t row = 0; row < job.count; ++row) {
      const std::uint32_t* in = job.rows[row] + channel * job.stride + first;
      const auto weight =
          static_cast<std::int32_t>((job.weights[row] & 0xffff) + (job.weights[row] >> 16 << kPairBits));
      for (std::size_t i = 0; i < count; ++i) sums[i] += static_cast<std::int32_t>(in[i] & 255) * weight;
    }
    for (std::size_t i = 0; i < count; ++i) put(first + i, static_cast<std::uint8_t>(pixel(sums[i])));
  }
}

void plain_column(const ColumnResize& job, std::uint8_t* out) {
  for (std::size_t channel = 0; channel < kChannels; ++channel) {
    column_channel(job, channel, [&](std::size_t i, std::uint8_t value) { out[i * kPixelBytes + channel] = value; });
  }
  for (std::size_t i = 0; i < job.width; ++i) out[i * kPixelBytes + kChannels] = 0;
}

// Calls with the table, the elements of the tensor and the steps between them that the row's type and layout mean.
template <typename Write>
void with_elements(const TensorRow& row, Write write) {
  const bool planar = row.tables.layout == Layout::kNchw;
  const std::size_t step = planar ? 1 : kChannels;
  const std::size_t next_channel = planar ? row.plane : 1;
  const OutputTables& tables = row.tables;
  if (tables.dtype == DType::kF32) write(tables.f32, reinterpret_cast<float*>(row.out), step, next_channel);
  if (tables.dtype == DType::kF16) write(tables.f16, reinterpret_cast<std::uint16_t*>(row.out), step, next_channel);
  if (tables.dtype == DType::kU8) write(tables.u8, reinterpret_cast<std::uint8_t*>(row.out), step, next_channel);
}

void plain_column_to_tensor(const ColumnResize& job, const TensorRow& row) {
  with_elements(row, [&](const auto& tables, auto* out, std::size_t step, std::size_t next_channel) {
    for (std::size_t channel = 0; channel < kChannels; ++channel) {
      const auto put = [&](std::size_t i, std::uint8_t value) {
        out[channel * next_channel + i * step] = tables[channel][value];
      };
      column_channel(job, channel, put);
    }
  });
}

void plain_write(const RowWrite& job, const TensorRow& row) {
  with_elements(row, [&](const auto& tables, auto* out, std::size_t step, std::size_t next_channel) {
    const auto to_next = static_cast<std::ptrdiff_t>(kPixelBytes) * (job.mirrored ? -1 : 1);
    const std::uint8_t* in = job.mirrored ? job.in + (job.width - 1) * kPixelBytes : job.in;
    for (std::size_t i = 0; i < job.width; ++i, in += to_next) {
      out[i * step] = tables[0][in[0]];
      out[i * step + next_channel] = tables[1][in[1]];
      out[i * step + 2 * next_channel] = tables[2][in[2]];
    }
  });
}

constexpr PixelKernels kPlain{.name = "plain",
                              .lanes = 4,
                              .row = plain_row,
                              .split = plain_split,
                              .column = plain_column,
                              .column_to_tensor = plain_column_to_tensor,
                              .write = plain_write,
                              .flush = [] {}};

}  // namespace

const PixelKernels& plain_kernels() {
  return kPlain;
}

}  // namespace foreload
