#!/usr/bin/env python3
"""pycrate and tshark read the octets of tests/snapshots and tests/data, and have to agree with us.

    python3 -m venv /tmp/witness && /tmp/witness/bin/pip install pycrate
    /tmp/witness/bin/python crates/nas/tests/witness/nas.py

pycrate agrees if it knows every IE of a message and encodes what it read back to the same octets;
tshark if it finds nothing malformed, missing or superfluous.
"""

import pathlib
import re
import struct
import subprocess
import sys
import tempfile

from pycrate_mobile.NAS5G import parse_NAS5G

TESTS = pathlib.Path(__file__).resolve().parent.parent
RECORD = re.compile(r"^(\w+)\n((?:7e|2e)[0-9a-f]+)$", re.M)

# pycrate 0.8.1 has no tag for the re-attempt indicator of this message (`V` where `T` is meant).
PYCRATE_IS_WRONG = {"PduSessionEstablishmentReject"}
SUSPECT = re.compile(r"[Mm]alformed|Missing Mandatory|Extraneous|not dissected|Unknown element")


def messages():
    """Name and octets of every message of the snapshots, and of every captured one."""
    for snapshot in sorted((TESTS / "snapshots").glob("octets__*.snap")):
        for name, octets in RECORD.findall(snapshot.read_text()):
            yield name, bytes.fromhex(octets)
    for line in (TESTS / "data" / "captured.tsv").read_text().splitlines():
        if not line.startswith("#"):
            fields = line.split("\t")
            yield fields[2], bytes.fromhex(fields[8])


def verdict(octets):
    """What is wrong with pycrate's reading, or None."""
    message, error = parse_NAS5G(octets, inner=False)
    if error:
        return f"error {error}"
    if message.to_bytes() != octets:
        return f"encodes to {message.to_bytes().hex()}"
    unknown = [ie._name for ie in message if ie._name.startswith("_T")]
    return f"unknown IEs {unknown}" if unknown else None


def tshark_findings(everything):
    """Name, octets and tshark's complaints, of the messages that it complains about."""
    with tempfile.NamedTemporaryFile(suffix=".pcap") as pcap:
        pcap.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 147))
        for _, octets in everything:
            pcap.write(struct.pack("<IIII", 0, 0, len(octets), len(octets)) + octets)
        pcap.flush()
        as_nas = 'uat:user_dlts:"User 0 (DLT=147)","nas-5gs","0","","0",""'
        tree = subprocess.run(
            ["tshark", "-r", pcap.name, "-o", as_nas, "-V"], capture_output=True, text=True, check=True
        ).stdout
    frames = re.split(r"^Frame \d+:", tree, flags=re.M)[1:]
    assert len(frames) == len(everything)
    for (name, octets), frame in zip(everything, frames):
        complaints = [line.strip() for line in frame.splitlines() if SUSPECT.search(line)]
        if complaints:
            yield name, octets, complaints


def main():
    everything = list(messages())
    wrong = [
        (name, octets, verdict(octets))
        for name, octets in everything
        if name not in PYCRATE_IS_WRONG and verdict(octets)
    ]
    wrong += tshark_findings(everything)
    for name, octets, problem in wrong:
        print(f"{name} {octets.hex()}: {problem}")
    print(f"{len(everything)} messages, {len(wrong)} where a witness disagrees")
    return 1 if wrong or not everything else 0


if __name__ == "__main__":
    sys.exit(main())
