# Of two renewals that cross each host refuses the other's, and both begin again at the same time.
# file: crates/hip/src/opening.rs
# options: --property L3
s/self\.identity\.hit() > self\.peer/self.identity.hit() != self.peer/
