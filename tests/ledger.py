"""The ledger: a dataset whose samples carry their id, length and checksum, and a reference that judges a run by it.

Nothing here uses foreload's code. A sample's bytes are a pure function of its id, so the judge needs no file: it takes
the ids that a log line claims, makes the bytes anew, and computes both hashes of the line by its own XXH3.
"""
import collections
import random
import struct
import zlib

SIZE = 64  # with the label at most 128 bytes: the lengths for which XXH3 is written out below
CLASSES = 5
MASK = (1 << 64) - 1


def chain(size=SIZE):
    return f"array(u8, {size}, headerless=1)"


def sample(number, size=SIZE):
    body = struct.pack("<QI", number, size) + random.Random(number).randbytes(size - 16)
    return body + struct.pack("<I", zlib.crc32(body))


def label(number, samples):
    return number * min(CLASSES, samples) // samples


def name(number, samples):
    return f"c{label(number, samples)}/{number:06}.bin"


def write_folder(folder, samples, size=SIZE):
    """A folder per class. Names are in the order of the numbers, so a sample's number is its id."""
    for number in range(samples):
        path = folder / name(number, samples)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(sample(number, size))
    return folder


# --- XXH3 with 64 bits, for 8 and for 17 … 128 bytes

SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221b8084674f743248e"
    "e03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8a8fa763fe39c343ff9dcbbc7c70b4f1d"
    "8a51e04bcdb45931c89f7ec9d9787364")


def word(data, at, size=8):
    return int.from_bytes(data[at:at + size], "little")


def turned(value, bits):
    return (value << bits | value >> 64 - bits) & MASK


def xxh3_of_8(data, seed):
    seed ^= int.from_bytes((seed & 0xffffffff).to_bytes(4, "little"), "big") << 32
    value = (word(data, 4, 4) + (word(data, 0, 4) << 32)) ^ ((word(SECRET, 8) ^ word(SECRET, 16)) - seed & MASK)
    value = (value ^ turned(value, 49) ^ turned(value, 24)) * 0x9fb21c651e98df25 & MASK
    value = (value ^ (value >> 35) + 8) * 0x9fb21c651e98df25 & MASK
    return value ^ value >> 28


def xxh3(data, seed):
    if len(data) == 8:
        return xxh3_of_8(data, seed)
    assert 17 <= len(data) <= 128, len(data)

    def mix(at, secret):
        product = ((word(data, at) ^ (word(SECRET, secret) + seed & MASK)) *
                   (word(data, at + 8) ^ (word(SECRET, secret + 8) - seed & MASK)))
        return product & MASK ^ product >> 64

    total = len(data) * 0x9e3779b185ebca87
    for i in range((len(data) - 1) // 32 + 1):
        total += mix(16 * i, 32 * i) + mix(len(data) - 16 * (i + 1), 32 * i + 16)
    total &= MASK
    total = (total ^ total >> 37) * 0x165667919e3779f9 & MASK
    return total ^ total >> 32


# --- the reference

def judge_lines(lines, samples):
    """What is wrong with the hashes of log lines; `samples` are (bytes, label) by id. Empty: nothing."""
    for line in lines:
        order = content = 0
        for position, number in zip(line["positions"], line["ids"]):
            data, tag = samples[number]
            order += xxh3(number.to_bytes(8, "little"), position)
            content += xxh3(data + (tag & MASK).to_bytes(8, "little"), position)
        for what, value in (("order", order), ("content", content)):
            if line[what] != f"{value & MASK:016x}":
                return f"{what} of {line} should be {value & MASK:016x}"
    return ""


def shares(samples, shape, last):
    """The positions of every step, for rank shape[1] of shape[0] with global batches of shape[2]."""
    world, rank, batch = shape
    if last == "auto":
        last = "ragged" if world == 1 else "pad"
    positions = {"ragged": samples, "pad": -(-samples // world) * world, "drop": samples // batch * batch}[last]
    found = []
    for first in range(0, positions, batch):
        length = min(batch, positions - first)
        begin, end = rank * length // world, (rank + 1) * length // world
        found.append(list(range(first + begin, first + end)))
    return found


def positions_of(lines):
    """{(epoch, position): id} over the lines of any number of ranks, and how often each pair was delivered."""
    ids, times = {}, collections.Counter()
    for line in lines:
        for position, number in zip(line["positions"], line["ids"]):
            ids[line["epoch"], position] = number
            times[line["epoch"], position] += 1
    return ids, times


def add_hex(values):
    return f"{sum(int(value, 16) for value in values) & MASK:016x}"


def steps(lines):
    """{(epoch, step): content hash of the global batch} over the lines of all ranks."""
    found = collections.defaultdict(list)
    for line in lines:
        found[line["epoch"], line["step"]].append(line["content"])
    return {key: add_hex(values) for key, values in found.items()}


def standard_samples(samples, size=SIZE):
    """What write_folder wrote, as the judge wants it."""
    return [(sample(number, size), label(number, samples)) for number in range(samples)]
