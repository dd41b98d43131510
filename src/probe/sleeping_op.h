// Prep that takes a known time and no CPU: a transform that sleeps for each sample, and delivers the beginning of its
// bytes. So that a machine of few cores shows what many workers would do. It is in the table of no other program.
#pragma once

#include "foreload/transform.h"

namespace foreload {

// Every process that prepares such samples has to; before it parses or compiles a chain.
void add_sleeping_op();
// Takes bytes / rate seconds per sample.
Transform sleeping(double bytes_per_second);

}  // namespace foreload
