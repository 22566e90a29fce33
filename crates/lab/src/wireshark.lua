-- HIP and ESP share UDP port 10500: after four zero bytes comes HIP, everything else is ESP (RFC 5770, section 5.1).
-- Wireshark knows only HIP there; for ESP it has the port of IKE and ESP, 4500.
local ports = DissectorTable.get("udp.port")
local hip, esp = ports:get_dissector(10500), ports:get_dissector(4500)
local both = Proto("hip-esp-udp", "HIP and ESP in UDP")

function both.dissector(buffer, packet, tree)
    local is_hip = buffer:len() > 4 and buffer(0, 4):uint() == 0
    return (is_hip and hip or esp):call(buffer, packet, tree)
end

ports:set(10500, both)

-- Between Sinnet hosts ESP also carries packets with a number that puts them in order, and reports on what arrived.
local protocols = DissectorTable.get("ip.proto")
local sinnet = Proto("sinnet", "Sinnet")
local kinds = { [1] = "report", [2] = "numbered packet", [3] = "first packet of a flow" }
local kind = ProtoField.uint8("sinnet.kind", "Kind", base.DEC, kinds, 0x0f)
local marks = { [0] = "Not-ECT", [1] = "ECT(1)", [2] = "ECT(0)", [3] = "CE" }
local ecn = ProtoField.uint8("sinnet.ecn", "Inner ECN", base.DEC, marks, 0xf0)
local next_header = ProtoField.uint8("sinnet.next_header", "Next header")
local number = ProtoField.uint16("sinnet.number", "Number")
local report = ProtoField.bytes("sinnet.report", "Report")
sinnet.fields = { kind, ecn, next_header, number, report }

function sinnet.dissector(buffer, packet, tree)
    if buffer:len() < 4 then
        return 0
    end
    local branch = tree:add(sinnet, buffer())
    branch:add(kind, buffer(0, 1))
    if buffer(0, 1):uint() < 2 then
        branch:add(report, buffer(1))
        packet.cols.protocol = "Sinnet"
        packet.cols.info = "report"
        return buffer:len()
    end
    branch:add(ecn, buffer(0, 1))
    branch:add(next_header, buffer(1, 1))
    branch:add(number, buffer(2, 2))
    local inner = protocols:get_dissector(buffer(1, 1):uint())
    return 4 + inner:call(buffer(4):tvb(), packet, tree)
end

protocols:set(253, sinnet)
