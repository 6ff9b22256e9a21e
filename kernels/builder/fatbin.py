"""Reads the device code that host libraries carry in their fat binaries, without NVIDIA's tools.

A fat binary is a container of entries, one an architecture; host libraries concatenate them in the section .nv_fatbin
(relocatable ones in __nv_relfatbin). Container: magic, u16 version, u16 header size, u64 bytes of entries. Entry: u16 kind,
u16, u32 header size, u64 payload size, u32 compressed size, u32, u16 minor, u16 major, u32 architecture, ..., at 40 u64
flags, at 56 u64 size when decompressed.
"""

import struct
from typing import Iterator, NamedTuple

import lz4.block
import zstandard

from . import elf

_MAGIC = b"\x50\xed\x55\xba"
_KIND_ELF = 2
_LZ4, _ZSTD, _ACCELERATED, _FAMILY = 0x2000, 0x8000, 0x100000, 0x200000


class Entry(NamedTuple):
    target: str  # "sm_90a"
    offset: int  # of the entry in the file
    payload: int
    stored_bytes: int
    bytes: int
    flags: int


def entries(library: memoryview) -> Iterator[Entry]:
    """The cubins of a library. Nothing is decompressed."""
    for section in elf.sections(library):
        if section.name not in (".nv_fatbin", "__nv_relfatbin"):
            continue
        at, end = section.offset, section.offset + section.size
        while at + 16 <= end:
            if bytes(library[at : at + 4]) != _MAGIC:
                at += 8  # containers are padded to 8 bytes or more
                continue
            header, size = struct.unpack_from("<HQ", library, at + 6)
            yield from _container(library, at + header, at + header + size)
            at += header + size


def _container(library: memoryview, at: int, end: int) -> Iterator[Entry]:
    while at < end:
        kind, _, header, payload, stored = struct.unpack_from("<HHIQI", library, at)
        (arch,) = struct.unpack_from("<I", library, at + 28)
        flags, _, size = struct.unpack_from("<QQQ", library, at + 40)
        if kind == _KIND_ELF:
            suffix = "a" if flags & _ACCELERATED else "f" if flags & _FAMILY else ""
            packed = flags & (_LZ4 | _ZSTD)
            yield Entry(f"sm_{arch}{suffix}", at, at + header, stored if packed else payload,
                        size if packed else payload, flags)
        at += header + payload


def extract(library: memoryview, entry: Entry) -> bytes:
    """The cubin of an entry."""
    stored = library[entry.payload : entry.payload + entry.stored_bytes]
    if entry.flags & _ZSTD:
        return zstandard.ZstdDecompressor().decompress(stored, max_output_size=entry.bytes)
    if entry.flags & _LZ4:
        return lz4.block.decompress(stored, uncompressed_size=entry.bytes)
    return bytes(stored)
