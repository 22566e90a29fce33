//! All integration tests in one program, so that they are linked once and wait side by side.

mod anonymous;
mod association;
mod attacks;
mod by_hand;
mod capture_crypto;
mod common;
mod encrypted;
mod guests;
mod locators;
mod nat;
mod notices;
mod openssl_dh;
mod openssl_identity;
mod plain_hosts;
mod rekey;
mod relay;
mod rendezvous;
mod scapy_esp;
mod strangers;
mod third_parties;
mod wireshark_esp;
