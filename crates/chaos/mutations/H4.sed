# The resequencer: who fills one hole now and then makes the rest stay for ever.
# file: crates/recovery/src/resequencer.rs
# options: --property R1
s/Some(patient\.min(\*came + self\.longest))/let _ = came; Some(patient)/
