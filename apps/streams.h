// Printing that can not fail half-way: who reads the output may be gone, the disk may be full.
#pragma once

#include <string_view>

namespace foreload {

// Errors are kept: all_printed() tells of them at the end.
void print_out(std::string_view text);
// Whether everything that was printed to standard output has arrived.
bool all_printed();

// Errors are ignored: there is nowhere to tell them.
void print_err(std::string_view text);

// Gives standard streams that are closed a place that refuses writing, so that no file that is opened later gets their
// number and with it their output.
void occupy_closed_streams();

}  // namespace foreload
