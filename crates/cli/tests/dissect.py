"""Gives what was captured to tshark, to scapy and, if the second argument is "pypcapkit", to pypcapkit.

Usage: dissect.py CAPTURE pypcapkit|no KEYS...

KEYS are files of `sinnet up --esp-keylog`. Every packet of HIP and ESP is dissected, and every remark that is not explained below is
told and fails the run. UDP port 10500 has both: after four zero bytes comes HIP, all else is ESP.
"""

import collections
import copy
import csv
import io
import logging
import multiprocessing
import struct
import subprocess
import sys

from scapy.layers.inet import IP, UDP
from scapy.layers.ipsec import ESP, SecurityAssociation
from scapy.utils import rdpcap

PORT = 10500
REMARKS = collections.Counter()
KINDS = {1: "I1", 2: "R1", 3: "I2", 4: "R2", 16: "UPDATE", 17: "NOTIFY", 18: "CLOSE", 19: "CLOSE_ACK"}
# What the scenario is about has to be in the capture: kinds of packets and parameters.
NEEDED = {"I1", "R1", "I2", "R2", "UPDATE", "CLOSE", "CLOSE_ACK"}
NEEDED_PARAMETERS = {
    65: "ESP_INFO", 193: "LOCATOR_SET", 930: "REG_INFO", 932: "REG_REQUEST", 934: "REG_RESPONSE", 950: "REG_FROM",
    4660: "MAPPED_ADDRESS", 4700: "CANDIDATE_PRIORITY", 63998: "RELAY_FROM", 64002: "RELAY_TO", 65498: "FROM",
    65500: "RVS_HMAC", 65502: "VIA_RVS", 65520: "RELAY_HMAC",
}
# Wireshark up to 4.0 at least reads the HOST_ID (705) of RFC 5201, with the flags, the protocol and the algorithm of a DNSKEY, where
# RFC 7401 §5.2.9 has an algorithm of 16 bits.
OF_TSHARK = {"Unknown algorithm type"}


def remark(tool, what):
    """Somebody has a remark about a packet."""
    REMARKS[f"{tool}: {what}"] += 1


def parameters(packet):
    """The types of its parameters (RFC 7401 §5.2.1), by hand."""
    rest, types = packet[40 : packet[1] * 8 + 8], []
    while len(rest) >= 4:
        kind, length = struct.unpack("!HH", rest[:4])
        types.append(kind)
        rest = rest[(11 + length - (length + 3) % 8) :]
    return types


def scapy(path, keys):
    """What the frames have in them: packets of HIP by frame, how many of ESP were decrypted by next header, and the ports of UDP."""
    hip, inner, numbers, ports = {}, collections.Counter(), set(), set()
    for number, frame in enumerate(rdpcap(path), 1):
        if IP not in frame:
            continue
        ip = frame[IP]
        if ip.proto == 17 and PORT in (frame[UDP].sport, frame[UDP].dport):
            ports |= {frame[UDP].sport, frame[UDP].dport}
            data = bytes(frame[UDP].payload)[: frame[UDP].len - 8]
            is_hip = data[:4] == bytes(4)
            data = data[4:] if is_hip else data
            if is_hip and data[4:6] != bytes(2):
                remark("scapy", "a checksum of HIP inside UDP is not 0 (RFC 9028 §5.1)")
        elif ip.proto in (50, 139):
            is_hip, data = ip.proto == 139, bytes(ip.payload)[: ip.len - 4 * ip.ihl]
        else:
            continue
        header = IP(bytes(ip)[: 4 * ip.ihl])
        del header.chksum
        if IP(bytes(header)).chksum != ip.chksum or ip.len > len(bytes(ip)) or ip.frag or ip.flags.MF:
            remark("scapy", "an IPv4 header is not right, or a packet is in fragments")
        if is_hip:
            hip[number] = data
            continue
        packet = ESP(data)
        if packet.spi not in keys:
            remark("scapy", f"no key of SPI {packet.spi:#x}")
            continue
        if packet.seq == 0 or (packet.spi, packet.seq) in numbers:
            remark("scapy", "a sequence number is 0, or comes twice")
        numbers.add((packet.spi, packet.seq))
        sa = SecurityAssociation(ESP, spi=packet.spi, crypt_algo="AES-GCM", crypt_key=keys[packet.spi])
        try:
            plain = sa.crypt_algo.decrypt(sa, packet, sa.crypt_key, sa.crypt_algo.icv_size)
            inner[plain.nh] += 1
        except Exception as error:  # whatever it is
            remark("scapy", f"ESP is not decrypted: {type(error).__name__}")
    return hip, inner, ports


def tshark(path, display, fields, *options):
    """Lines of fields of the frames that fit."""
    command = ["tshark", "-r", path, "-Y", display, "-T", "fields", "-E", "separator=|", "-E", "aggregator=;", *options]
    for field in fields:
        command += ["-e", field]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [line.split("|") for line in output.splitlines()]


def severe(severities, messages):
    """The messages from warnings on (0x600000), and those that cannot be told apart."""
    told, known = messages.split(";") if messages else [], severities.split(";") if severities else []
    if len(told) != len(known):
        return told or known
    return [message for message, severity in zip(told, known) if int(severity, 0) >= 0x600000]


def tshark_remarks(path, hip, sealed, ports, lines):
    """tshark has to see the same packets as HIP and as ESP, and to find every checksum and ICV right."""
    expert = ["_ws.expert.severity", "_ws.expert.message"]

    def inside_udp(protocol):
        """The port that a NAT gives may be another protocol's, which would be tried first."""
        return [word for port in sorted(ports) for word in ("-d", f"udp.port=={port},{protocol}")]

    found = tshark(path, "hip", ["frame.number", "hip.type", "hip.checksum.status", "ip.proto", *expert], *inside_udp("hip"))
    if {int(row[0]) for row in found} != set(hip):
        remark("tshark", f"{len(found)} packets of HIP, not {len(hip)}")
    for number, types, status, protocol, severities, messages in found:
        if [int(kind, 0) for kind in types.split(";") if kind] != parameters(hip.get(int(number), bytes(40))):
            remark("tshark", "other parameters than there are")
        if protocol == "139" and status not in ("1", "Good"):
            remark("tshark", f"checksum status {status}")
        for message in severe(severities, messages):
            if message not in OF_TSHARK:
                remark("tshark", message)
    options = [*inside_udp("udpencap"), "-o", "esp.enable_encryption_decode:TRUE"]
    # One number in 256 is left out on purpose.
    options += ["-o", "esp.enable_authentication_check:TRUE", "-o", "esp.do_esp_sequence_analysis:FALSE"]
    # Inside are the kernel's packets, of whose headers Wireshark has no HITs for the checksums.
    options += ["--disable-protocol", "icmpv6", "--disable-protocol", "tcp"]
    for line in lines:
        options += ["-o", f"uat:esp_sa:{line}"]
    # A NAT that takes no ESP quotes the beginning of one that came without UDP.
    found = tshark(path, "esp and not icmp", ["frame.number", "esp.icv_good", *expert], *options)
    if len(found) != sealed:
        remark("tshark", f"{len(found)} packets of ESP, not {sealed}")
    for _, good, severities, messages in found:
        if good not in ("1", "True"):
            remark("tshark", "an ICV is not right")
        for message in severe(severities, messages):
            remark("tshark", message)


# Where pypcapkit of this version is wrong: the parameter, what it does, and a repair.
PYPCAPKIT = "1.4.1.post2"


def pypcapkit_repairs():
    """By parameter, what is wrong and how it is made right; 0 is of all parameters."""
    from pcapkit.const.hip.esp_transform_suite import ESPTransformSuite
    from pcapkit.const.hip.parameter import Parameter
    from pcapkit.corekit.fields.collections import ListField
    from pcapkit.corekit.fields.numbers import EnumField, UInt8Field, UInt64Field
    from pcapkit.corekit.fields.strings import BitField, BytesField
    from pcapkit.protocols.internet.hip import HIP
    from pcapkit.protocols.schema.internet import hip as schema

    def put(of, name, field):
        field.name = name
        of.__fields__[name] = field

    def padding():
        """All are padded to a multiple of 8 bytes without their header of 4 (RFC 7401 §5.2.1: with it)."""
        for of in vars(schema).values():
            if isinstance(of, type) and issubclass(of, schema.Parameter) and "padding" in of.__fields__:
                of.__fields__["padding"]._length_callback = lambda packet: -(4 + packet["len"]) % 8

    def counter():
        """R1_COUNTER has 4 bytes (§5.2.3: 8)."""
        put(schema.R1CounterParameter, "counter", UInt64Field())

    def locators():
        """LOCATOR_SET has no locators of type 2, which are candidates (RFC 9028 §5.7): passed over here."""
        select = schema.Locator.__fields__["value"]._selector
        is_candidate = lambda kind, words: (kind, words) == (2, 7)
        schema.Locator.__fields__["value"]._selector = lambda packet: (
            BytesField(length=28) if is_candidate(packet["type"], packet["len"]) else select(packet)
        )
        read = HIP._read_param_locator_set

        def without(self, parameter, **arguments):
            known = copy.copy(parameter)
            known.locators = [each for each in parameter.locators if not is_candidate(each.type, each.len)]
            return read(self, known, **arguments)

        HIP._read_param_locator_set = without

    def domain():
        """HOST_ID has 4 bytes for the type and the length of the domain identifier (RFC 7401 §5.2.9: 2)."""
        put(schema.HostIDParameter, "di_data", BitField(length=2, namespace={"type": (0, 4), "len": (4, 12)}))

    def suites():
        """HIT_SUITE_LIST has the ID in the lower half of each byte (§5.2.10: in the upper)."""
        put(schema.HITSuiteListParameter, "suites", ListField(length=lambda packet: packet["len"], item_type=UInt8Field()))

    def formats():
        """TRANSPORT_FORMAT_LIST has a byte for each, and two less of them (§5.2.11: two bytes)."""
        item = EnumField(length=2, namespace=Parameter)
        put(schema.TransportFormatListParameter, "formats", ListField(length=lambda packet: packet["len"], item_type=item))

    def transforms():
        """ESP_TRANSFORM has a byte for each suite (RFC 7402 §5.1.2: two)."""
        item = EnumField(length=2, namespace=ESPTransformSuite)
        put(schema.ESPTransformParameter, "suites", ListField(length=lambda packet: packet["len"] - 2, item_type=item))

    return {0: padding, 129: counter, 193: locators, 705: domain, 715: suites, 2049: formats, 4095: transforms}


def pypcapkit_remarks(hip, but):
    """What it says after all repairs `but` one."""
    from pcapkit.protocols.internet.hip import HIP

    logging.disable(logging.CRITICAL)
    for number, repair in pypcapkit_repairs().items():
        if number != but:
            repair()
    for packet in hip.values():
        kind = KINDS.get(packet[2] & 0x7F)
        try:
            told = HIP(io.BytesIO(packet), len(packet), extension=True).info
            found = list(told.parameters.items(multi=True)) if "parameters" in told else []
            if [int(number) for number, _ in found] != parameters(packet):
                remark("pypcapkit", f"other parameters of an {kind} than there are")
            for number, parameter in found:
                if number == 4095 and any(suite not in (7, 8, 9, 11, 13) for suite in parameter.suite_id):
                    remark("pypcapkit", f"suites of ESP that there are not: {parameter.suite_id}")
        except Exception as error:  # whatever it is
            remark("pypcapkit", f"{kind}: {type(error).__name__}: {error}")


def are_there_remarks(hip, but):
    """Whether it says something, in a process of its own."""
    REMARKS.clear()
    pypcapkit_remarks(hip, but)
    return bool(REMARKS)


def main():
    """Dissects, and tells."""
    path, kit, *files = sys.argv[1:]
    rows = [row for file in files for row in csv.reader(open(file, encoding="ascii"))]
    keys = {int(row[3], 0): bytes.fromhex(row[5][2:]) for row in rows}
    # Behind NATs others have other addresses than they know of.
    lines = sorted({",".join(f'"{field}"' for field in [row[0], "*", "*", *row[3:]]) for row in rows})
    hip, inner, ports = scapy(path, keys)
    tshark_remarks(path, hip, sum(inner.values()), ports, lines)
    kinds = collections.Counter(KINDS.get(packet[2] & 0x7F) for packet in hip.values())
    types = {kind for packet in hip.values() for kind in parameters(packet)}
    missing = NEEDED - set(kinds) | {name for number, name in NEEDED_PARAMETERS.items() if number not in types}
    for what in missing:
        remark("capture", f"no {what}")
    if kit == "pypcapkit":
        import pcapkit

        if pcapkit.__version__ != PYPCAPKIT:
            remark("pypcapkit", f"version {pcapkit.__version__}, and not {PYPCAPKIT}, whose faults are known")
        # What is repaired in vain is not to stay: without each of them there are remarks.
        with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as pool:
            for number in pypcapkit_repairs():
                if not pool.apply(are_there_remarks, (hip, number)):
                    remark("pypcapkit", f"the repair of {number} is needed no more")
        pypcapkit_remarks(hip, None)
    told = " ".join(f"{count} {kind}" for kind, count in sorted(kinds.items(), key=str))
    protocols = ", ".join(f"{count} of {number}" for number, count in sorted(inner.items()))
    print(f"{len(hip)} packets of HIP ({told}) with {len(types)} kinds of parameters, {sum(inner.values())} of ESP ({protocols})")
    for what, count in REMARKS.most_common():
        print(f"{count} times: {what}")
    sys.exit(bool(REMARKS))


main()
