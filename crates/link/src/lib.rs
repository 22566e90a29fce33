//! What a link does to packets: rate, delay, queue, loss, outage.
