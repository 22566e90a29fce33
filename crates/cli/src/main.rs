//! The program `sinnet`: reads the command line and calls the rooms.

fn main() {}
