#!/usr/bin/env python3
"""pycrate and tshark read the octets of tests/snapshots and tests/data, and have to agree with us.

    python3 -m venv /tmp/witness && /tmp/witness/bin/pip install pycrate
    /tmp/witness/bin/python crates/ngap/tests/witness/ngap.py

pycrate agrees if it knows the message and every IE of it and encodes what it read back to the same
octets; tshark if it finds nothing malformed. Both look into the transfers.
"""

import pathlib
import re
import struct
import subprocess
import sys
import tempfile

from pycrate_asn1dir import NGAP

TESTS = pathlib.Path(__file__).resolve().parent.parent
RECORD = re.compile(r"^(\w+)\n([024]0[0-9a-f]+)$", re.M)
SUSPECT = re.compile(r"[Mm]alformed|Expert Info \(Error|BER Error|not dissected")
# tshark also dissects the RRC inside of these, of which the samples have a few octets only.
HAVE_RRC = {
    "HandoverCommand",
    "HandoverRequest",
    "HandoverRequestAcknowledge",
    "HandoverRequired",
    "InitialContextSetupRequest",
    "UeRadioCapabilityInfoIndication",
}
PDU = NGAP.NGAP_PDU_Descriptions.NGAP_PDU


def messages():
    """Name and octets of every message of the snapshots, and of every captured one."""
    snapshot = (TESTS / "snapshots" / "octets__ngap.snap").read_text()
    for name, octets in RECORD.findall(snapshot):
        yield name, bytes.fromhex(octets)
    for line in (TESTS / "data" / "captured.tsv").read_text().splitlines():
        if not line.startswith("#"):
            name, octets = line.split("\t")
            yield name, bytes.fromhex(octets)


def unknown_parts(value):
    """Open types that pycrate could not name, anywhere in a value."""
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str):
        if value[0].startswith("_unk"):
            yield value
        yield from unknown_parts(value[1])
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from unknown_parts(part)
    elif isinstance(value, dict):
        yield from unknown_parts(list(value.values()))


def verdict(octets):
    """What is wrong with pycrate's reading, or None."""
    try:
        PDU.from_aper(octets)
    except Exception as error:  # pycrate raises many kinds
        return f"does not decode: {error}"
    if PDU.to_aper() != octets:
        return f"encodes to {PDU.to_aper().hex()}"
    unknown = list(unknown_parts(PDU.get_val()))
    return f"unknown {unknown}" if unknown else None


def tshark_findings(everything):
    """Name, octets and tshark's complaints, of the messages that it complains about."""
    with tempfile.NamedTemporaryFile(suffix=".pcap") as pcap:
        pcap.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 147))
        for _, octets in everything:
            pcap.write(struct.pack("<IIII", 0, 0, len(octets), len(octets)) + octets)
        pcap.flush()
        as_ngap = 'uat:user_dlts:"User 0 (DLT=147)","ngap","0","","0",""'
        tree = subprocess.run(
            ["tshark", "-r", pcap.name, "-o", as_ngap, "-V"], capture_output=True, text=True, check=True
        ).stdout
    frames = re.split(r"^Frame \d+:", tree, flags=re.M)[1:]
    assert len(frames) == len(everything)
    for (name, octets), frame in zip(everything, frames):
        complaints = [line.strip() for line in frame.splitlines() if SUSPECT.search(line)]
        if complaints and name not in HAVE_RRC:
            yield name, octets, complaints


def main():
    everything = list(messages())
    wrong = [(name, octets, verdict(octets)) for name, octets in everything]
    wrong = [finding for finding in wrong if finding[2]]
    wrong += tshark_findings(everything)
    for name, octets, problem in wrong:
        print(f"{name} {octets.hex()}: {problem}")
    print(f"{len(everything)} messages, {len(wrong)} where a witness disagrees")
    return 1 if wrong or not everything else 0


if __name__ == "__main__":
    sys.exit(main())
