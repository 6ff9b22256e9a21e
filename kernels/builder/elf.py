"""The little of ELF64 that finding kernels needs: sections, the entry points of a cubin, and cutting one kernel out."""

import struct
from typing import Iterator, NamedTuple

_ENTRY = 0x10  # STO_CUDA_ENTRY in st_other: a kernel, not a device function
_NULL, _SYMTAB, _STRTAB, _RELA, _NOBITS, _REL = 0, 2, 3, 4, 8, 9
_SYMBOL_BYTES = 24
_FUNCTION = 2


class Section(NamedTuple):
    name: str
    kind: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int


def sections(data: memoryview) -> list[Section]:
    """Every section header, in order. ValueError for what is no little-endian ELF64."""
    if bytes(data[:6]) != b"\x7fELF\x02\x01":
        raise ValueError("no little-endian ELF64 file")
    (table,) = struct.unpack_from("<Q", data, 0x28)
    size, count, names_index = struct.unpack_from("<HHH", data, 0x3A)
    raw = [struct.unpack_from("<IIQQQQIIQQ", data, table + i * size) for i in range(count)]
    names = raw[names_index]
    strings = bytes(data[names[4] : names[4] + names[5]])
    return [Section(_string(strings, r[0]), r[1], r[4], r[5], r[6], r[7], r[8]) for r in raw]


def kernels(data: memoryview) -> Iterator[str]:
    """The mangled names of the kernels of a cubin."""
    for _, name, info, other, _ in _symbols(data, sections(data)):
        if info & 0xF == _FUNCTION and other & _ENTRY:
            yield name


def cut(data: bytes, kernel: str) -> bytes:
    """The cubin with one of its kernels, what that kernel refers to, and nothing of the others.

    Section and symbol numbers stay, so that no reference has to be rewritten: what is left out becomes an empty section.
    """
    view = memoryview(data)
    found = sections(view)
    symbols = list(_symbols(view, found))
    keep = _needed(view, found, symbols, kernel)
    out = bytearray(data[:0x40])
    headers = bytearray()
    (table,) = struct.unpack_from("<Q", data, 0x28)
    (header_bytes,) = struct.unpack_from("<H", data, 0x3A)
    for index, section in enumerate(found):
        header = bytearray(data[table + index * header_bytes : table + (index + 1) * header_bytes])
        if index not in keep:
            headers += header[:4] + bytes(header_bytes - 4)
            continue
        body = bytearray()
        if section.kind != _NOBITS:
            body += data[section.offset : section.offset + section.size]
        if section.kind == _SYMTAB:
            for number, (_, _, info, _, target) in enumerate(symbols):
                if target < len(found) and target not in keep:  # binding stays: local symbols come first
                    body[number * _SYMBOL_BYTES : (number + 1) * _SYMBOL_BYTES] = struct.pack("<IBBHQQ", 0, info & 0xF0, 0, 0, 0, 0)
        if section.name == ".nv.info":
            body = _records_of(body, {i for i, s in enumerate(symbols) if s[4] in keep})
        out += bytes(-len(out) % max(section.alignment, 1))
        struct.pack_into("<QQ", header, 24, len(out), len(body) if section.kind != _NOBITS else section.size)
        out += body
        headers += header
    out += bytes(-len(out) % 8)
    struct.pack_into("<QQ", out, 0x20, 0, len(out))  # no program headers: they are for loading
    struct.pack_into("<H", out, 0x38, 0)
    return bytes(out + headers)


def _string(table: bytes, offset: int) -> str:
    return table[offset : table.index(b"\0", offset)].decode()


def _symbols(data: memoryview, found: list[Section]) -> Iterator[tuple[int, str, int, int, int]]:
    """(number, name, info, other, section) of each symbol."""
    for table in (s for s in found if s.kind == _SYMTAB):
        names = found[table.link]
        strings = bytes(data[names.offset : names.offset + names.size])
        for number in range(table.size // _SYMBOL_BYTES):
            name, info, other, section = struct.unpack_from("<IBBH", data, table.offset + number * _SYMBOL_BYTES)
            yield number, _string(strings, name), info, other, section


def _needed(data: memoryview, found: list[Section], symbols: list, kernel: str) -> set[int]:
    """Sections of the module as a whole, of the kernel, and of the functions that it calls."""
    code = {s.name[len(".text.") :]: i for i, s in enumerate(found) if s.name.startswith(".text.")}
    if kernel not in code:
        raise KeyError(kernel)
    wanted, queue = set(), [kernel]
    while queue:
        function = queue.pop()
        wanted.add(function)
        for section in found:
            if section.kind in (_REL, _RELA) and section.info == code[function]:
                step = 24 if section.kind == _RELA else 16
                for at in range(section.offset, section.offset + section.size, step):
                    (info,) = struct.unpack_from("<Q", data, at + 8)
                    target = found[symbols[info >> 32][4]] if symbols[info >> 32][4] < len(found) else None
                    if target is not None and target.name.startswith(".text."):
                        callee = target.name[len(".text.") :]
                        if callee not in wanted:
                            queue.append(callee)
    others = tuple("." + name for name in code if name not in wanted)
    dropped = (".debug", ".nv.callgraph", ".nv.prototype", ".nv.rel.action", ".rel.debug", ".rela.debug", ".nv.capmerc", ".nv.merc")
    own = {i for i, s in enumerate(found) if any(s.name.endswith("." + name) for name in wanted)}
    return own | {
        i for i, s in enumerate(found) if not s.name.startswith(dropped) and not s.name.endswith(others)
    }


def _records_of(info: bytes, symbols: set[int]) -> bytearray:
    """The records of the module's .nv.info that are about no symbol or one of `symbols`."""
    out, at = bytearray(), 0
    while at + 4 <= len(info):
        form, _, size = struct.unpack_from("<BBH", info, at)
        end = at + 4 + (size if form == 4 else 0)
        if form != 4 or size < 8 or struct.unpack_from("<I", info, at + 4)[0] in symbols:
            out += info[at:end]
        at = end
    return out


def parameters(data: bytes, kernel: str) -> list[tuple[int, int]]:
    """(offset, size) of each parameter of a kernel, by its ordinal (EIATTR_KPARAM_INFO, or its second version)."""
    section = next(s for s in sections(memoryview(data)) if s.name == f".nv.info.{kernel}")
    info, found, at = data[section.offset : section.offset + section.size], {}, 0
    while at + 4 <= len(info):
        form, attribute, size = struct.unpack_from("<BBH", info, at)
        if form == 4 and attribute in (0x17, 0x45):
            _, ordinal, offset, packed = struct.unpack_from("<IHHI", info, at + 4)
            found[ordinal] = (offset, packed >> 18 if attribute == 0x17 else packed & 0xFFFFFF)
        at += 4 + (size if form == 4 else 0)
    return [found[i] for i in sorted(found)]
