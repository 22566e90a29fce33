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
