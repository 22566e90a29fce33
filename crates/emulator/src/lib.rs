//! Real time: links between the TUN devices of network namespaces.
