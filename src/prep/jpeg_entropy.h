// JpegEntropy: a Huffman decoder that takes the place of libjpeg's own for one baseline scan, which is where most of
// the time of a decode goes. It gives the same coefficients, only sooner; and it knows which columns of MCUs are
// wanted, and reconstructs no others. At the first thing in the data that is not as it should be it gives up, and the
// caller decodes the picture again with libjpeg, whose way with damaged data then counts. Not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "prep/jpeg_code_table.h"
#include "prep/jpeg_library.h"
#include "prep/jpeg_splice.h"

namespace foreload {

class JpegEntropy {
 public:
  enum class Code { kBest, kPortable };  // the quickest for this processor, or what runs on all
  explicit JpegEntropy(Code code = Code::kBest);
  JpegEntropy(const JpegEntropy&) = delete;
  JpegEntropy& operator=(const JpegEntropy&) = delete;
  ~JpegEntropy();

  // To be called between jpeg_start_decompress() and the first row. False for files that it does not decode: then
  // libjpeg does. MCUs outside `columns` are read over, and so will be those of the first rows of MCUs.
  [[nodiscard]] bool take_over(jpeg_decompress_struct& info, McuRange columns, std::uint32_t skipped_mcu_rows);
  // libjpeg came back with an error because of us; the file may be as good as any.
  bool gave_up() const { return gave_up_; }
  void forget() { gave_up_ = false; }

 private:
  struct Hook;
  // The next bits of the scan, the first one at the top. What stands behind `count` is not known yet, but never wrong.
  struct Window {
    std::uint64_t bits = 0;
    unsigned count = 0;
    std::uint64_t invented = 0;  // how many of them stand behind the end of the data
    const std::uint8_t* at = nullptr;
    const std::uint8_t* end = nullptr;

    void fill();  // to 56 bits at least
    void fill_slowly();
    void drop(JpegCodeTable::Entry entry);
  };
  static constexpr unsigned kMostParts = 4;
  static constexpr unsigned kMostBlocks = 10;

  [[noreturn]] void give_up(j_decompress_ptr info);
  static boolean on_mcu(j_decompress_ptr info, JBLOCKROW* blocks);
  // False, as below, when the data is not as it should be.
  bool next_interval();
  bool can_leap(const JBLOCKROW* blocks) const;
  // All blocks of an MCU; null: they are only read over. For any processor, and for those with BMI2.
  bool mcu(JBLOCKROW* blocks);
  bool mcu_bmi2(JBLOCKROW* blocks);
  template <bool kStore>
  bool read_mcu(JBLOCKROW* blocks);
  bool read_dc(Window& window, unsigned part);
  void make_tables(const jpeg_decompress_struct& info, bool skips_much);
  template <typename Step>
  static void walk(Window& window, Step step);
  static bool read_ac(Window& window, const JpegCodeTable& table, JCOEF* to);
  static bool skip_ac(Window& window, const JpegCodeTable& table);

  std::unique_ptr<Hook> hook_;
  bool has_bmi2_;
  std::array<JpegCodeTable, NUM_HUFF_TBLS> dc_tables_;
  std::array<JpegCodeTable, NUM_HUFF_TBLS> ac_tables_;
  std::array<std::uint8_t, kMostParts> dc_of_part_{};
  std::array<std::uint8_t, kMostParts> ac_of_part_{};
  std::array<int, kMostParts> last_dc_{};
  std::array<std::uint8_t, kMostBlocks> part_of_block_{};
  unsigned blocks_ = 0;
  Window window_;
  McuRange columns_;
  std::uint32_t mcus_per_row_ = 0;
  std::uint32_t column_ = 0;    // of the next MCU
  std::uint32_t interval_ = 0;  // MCUs between restart markers; 0: there are none
  std::uint32_t left_ = 0;      // MCUs until the next one
  unsigned next_marker_ = 0;
  bool leaps_ = false;  // over what is left until the next one
  bool gave_up_ = false;
};

}  // namespace foreload
