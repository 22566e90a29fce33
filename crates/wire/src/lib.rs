//! Packets on the wire: HIP, ESP, and what is read of IP, TCP, UDP and ICMP headers.
