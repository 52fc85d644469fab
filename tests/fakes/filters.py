"""What a filter for system calls decides, found out by a small interpreter."""

from __future__ import annotations

import struct

import pytest

from holdfast.host.sandbox.filter import MACHINES, Machine, program

ALLOW, NOTIFY, EPERM, ENOSYS = 0x7FFF0000, 0x7FC00000, 0x00050001, 0x00050026
BOTH = pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES.keys())


def decide(instructions: bytes, audit: int, number: int, *arguments: int) -> int:
    """What the kernel would make of a call: a filter is a program that only jumps forward."""
    values = [*arguments, 0, 0, 0, 0, 0, 0][:6]
    data = struct.pack("=IIQ6Q", number, audit, 0, *values)
    lines = list(struct.iter_unpack("=HBBI", instructions))
    value = at = 0
    while True:
        code, then, otherwise, constant = lines[at]
        at += 1
        match code:
            case 0x20:
                (value,) = struct.unpack_from("=I", data, constant)
            case 0x54:
                value &= constant
            case 0x15:
                at += then if value == constant else otherwise
            case 0x35:
                at += then if value >= constant else otherwise
            case 0x45:
                at += then if value & constant else otherwise
            case 0x06:
                return int(constant)
            case _:
                pytest.fail(f"unknown instruction {code:#x}")


class Decisions:
    """One filter, asked by the names of calls."""

    def __init__(
        self,
        machine: Machine = MACHINES["x86_64"],
        *,
        network: bool = False,
        witness: bool = False,
        files: bool = True,
        attributes: bool = True,
        namespaces: bool = True,
        binds: bool = False,
        guard: bool = False,
    ) -> None:
        self._machine = machine
        self.instructions = program(
            machine,
            network=network,
            witness=witness,
            files=files,
            attributes=attributes,
            namespaces=namespaces,
            binds=binds,
            guard=guard,
        )

    def on(self, name: str, *arguments: int) -> int:
        return decide(self.instructions, self._machine.audit, self._machine.calls[name], *arguments)
