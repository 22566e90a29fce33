# An UPDATE that comes again is answered to wherever it comes from now.
# file: crates/hip/src/update.rs
# options: --property S4
s/answer\.seq == seq && answer\.route == here/answer.seq == seq/
