# The largest sequence number overflows.
# file: crates/multipath/src/received.rs
# options: --property P1
s/before\.saturating_add(1)/before + 1/
