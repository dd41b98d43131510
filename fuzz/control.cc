// A control block of arbitrary bytes, as another member may leave it: whoever adopts it asks it everything, enters,
// takes memory and cores of it and leaves. Nothing of that crashes, hangs, or takes more than the budget.
#include "host/control.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/clock.h"

namespace {

using foreload::Bytes;
using foreload::Control;

void look(const Control& control) {
  for (const foreload::ObjectInfo& object : control.objects()) (void)control.object(object.id);
  for (const foreload::MemberInfo& member : control.members()) (void)control.is_alive(member.id);
  if (control.cores() < 1 || control.cores() > Control::kMostCores) std::abort();
  if (control.cores_in_use(foreload::now()) > control.cores()) std::abort();
}

void take_part(Control& control) {
  (void)control.reserve(1000).ok();
  const foreload::ObjectKey key{foreload::ObjectKey::Kind::kArena, 1, 2};
  if (const auto found = control.find_or_add(key, 4096, 4096); found.ok()) {
    (void)control.grow(found->object.id, 8192).ok();
    (void)control.hold(found->object.id, false).ok();
    (void)control.drop(found->object.id).ok();
    (void)control.withdraw(found->object.id).ok();
  }
  (void)control.collect().ok();
  if (auto core = control.take_core(foreload::now())) {
    if (core->index >= control.cores() || !control.renew(*core, foreload::now())) std::abort();
    control.give_back(*core);
  }
}

}  // namespace

// The input: pairs of a place (16 bits, in words) and a word that is written there.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto made = Control::create(1 << 20, 4);
  if (!made.ok()) return 0;
  const auto memory = made->memory().bytes();
  for (std::size_t at = 0; at + 10 <= size; at += 10) {
    std::uint16_t place = 0;
    std::memcpy(&place, data + at, sizeof place);
    std::memcpy(memory.data() + place % (memory.size() / 8) * 8, data + at + 2, 8);
  }
  auto adopted = Control::adopt(foreload::Descriptor(::dup(made->memory().file())));
  if (!adopted.ok()) return 0;
  Control& control = *adopted;
  look(control);
  if (!control.enter(size % foreload::kMostMembers)) return 0;
  for (const foreload::MemberId member : control.dead()) control.clear(member);
  take_part(control);
  look(control);
  control.leave();
  return 0;
}
