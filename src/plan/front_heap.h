// A binary heap of which only the front is looked at and changed: what a greedy dealing to the least loaded needs.
// `before(a, b)`: a comes to the front rather than b; a strict order without ties makes the result independent of the
// layout.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

namespace foreload {

// Puts `heap[place]` where it belongs below. REQUIRES: all below it is a heap.
template <typename T, typename Before>
inline void sift_down(std::span<T> heap, std::size_t place, Before before) {
  const T moved = heap[place];
  for (std::size_t child = 2 * place + 1; child < heap.size(); child = 2 * place + 1) {
    if (child + 1 < heap.size() && before(heap[child + 1], heap[child])) ++child;
    if (!before(heap[child], moved)) break;
    heap[place] = heap[child];
    place = child;
  }
  heap[place] = moved;
}

template <typename T, typename Before>
inline void heapify(std::span<T> heap, Before before) {
  for (std::size_t place = heap.size() / 2; place > 0; --place) sift_down(heap, place - 1, before);
}

// The heap without its front, which then stands behind it. REQUIRES: there is one.
template <typename T, typename Before>
inline std::span<T> without_front(std::span<T> heap, Before before) {
  std::swap(heap.front(), heap.back());
  heap = heap.first(heap.size() - 1);
  if (!heap.empty()) sift_down(heap, 0, before);
  return heap;
}

}  // namespace foreload
