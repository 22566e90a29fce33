//! Privileges are needed to create the TUN device, to bind to a device or to a raw socket, and for port 53. All that
//! happens before the first packet, so after it the daemon gives up every capability, also the right to ever regain one.
//! It keeps its user: the files it still writes (key log, control socket) belong to whoever started it.

use std::io;

use caps::CapSet;

/// Gives up all capabilities of this thread, for good.
///
/// # Errors
/// Where the kernel does not allow even that.
pub fn drop_all() -> io::Result<()> {
    // Emptying the bounding set needs CAP_SETPCAP, which a user who holds only CAP_NET_ADMIN lacks; no_new_privs closes
    // the same door.
    let _ = caps::clear(None, CapSet::Bounding);
    rustix::thread::set_no_new_privs(true)?;
    // Kernels without ambient capabilities have none to give up.
    let _ = caps::clear(None, CapSet::Ambient);
    for set in [CapSet::Inheritable, CapSet::Effective, CapSet::Permitted] {
        caps::clear(None, set).map_err(io::Error::other)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_and_the_kernel_agrees() {
        // Capabilities and no_new_privs belong to a thread; the others keep theirs.
        std::thread::spawn(|| {
            drop_all().expect("giving up is always allowed");
            let status = std::fs::read_to_string("/proc/thread-self/status").expect("proc");
            for set in ["CapEff", "CapPrm", "CapInh", "CapAmb"] {
                assert!(status.contains(&format!("{set}:\t0000000000000000")), "{status}");
            }
            assert!(status.contains("NoNewPrivs:\t1"), "{status}");
        })
        .join()
        .expect("the thread ends");
    }
}
