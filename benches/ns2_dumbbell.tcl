# A dumbbell of N New Reno flows for ns-2: the scenario of crates/simulator/benches/dumbbell.rs, with access links of
# each flow's own at both ends (1 ms, ten times the bottleneck) or, with "shared", all flows on the two ends.
#
#   ns benches/ns2_dumbbell.tcl FLOWS SECONDS access|shared
#
# Prints one line of JSON. Routes are set by hand and packets have no headers that nobody reads: ns-2 at its fastest.

lassign $argv flows seconds topology

remove-all-packet-headers
add-packet-header IP TCP Flags
set ns [new Simulator]
$ns rtproto Manual

set wire 1250
set rate [expr {$flows * 1e6}]
set roundtrip [expr {$topology eq "access" ? 0.064 : 0.060}]
set queue [expr {max(5, int(1.5 * $rate * $roundtrip / (8.0 * $wire) + 0.5))}]
Queue set limit_ 1000000

# One route to all, or one route to a node.
proc route {node to via} {
    set module [$node get-module "Manual"]
    if {$to eq ""} { $module add-route-to-adj-node -default $via } else { $module add-route-to-adj-node $to }
}

set left [$ns node]
set right [$ns node]
$ns duplex-link $left $right $rate 30ms DropTail
$ns queue-limit $left $right $queue
route $left "" $right
route $right "" $left

for {set i 0} {$i < $flows} {incr i} {
    if {$topology eq "access"} {
        set from [$ns node]
        set to [$ns node]
        $ns duplex-link $from $left [expr {10 * $rate}] 1ms DropTail
        $ns duplex-link $right $to [expr {10 * $rate}] 1ms DropTail
        route $from "" $left
        route $to "" $right
        route $left $from ""
        route $right $to ""
    } else {
        set from $left
        set to $right
    }
    set tcp($i) [new Agent/TCP/Newreno]
    $tcp($i) set packetSize_ [expr {$wire - 40}]
    $tcp($i) set window_ 100000
    set sink [new Agent/TCPSink]
    $ns attach-agent $from $tcp($i)
    $ns attach-agent $to $sink
    $ns connect $tcp($i) $sink
    set source [new Application/FTP]
    $source attach-agent $tcp($i)
    $ns at [expr {double($i) / $flows}] "$source start"
}

$ns at $seconds {
    # Packets acknowledged went through the bottleneck, and so did those sent again after others were dropped; the
    # first is what is counted, to the disadvantage of nobody by more than a few per cent.
    set packets 0
    for {set i 0} {$i < $flows} {incr i} { incr packets [expr {[$tcp($i) set ack_] + 1}] }
    puts "{\"simulator\":\"ns-2\",\"flows\":$flows,\"topology\":\"$topology\",\"bottleneck_packets\":$packets}"
    exit 0
}
$ns run
