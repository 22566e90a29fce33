use std::sync::Arc;
use clock::*; use link::*; use simulator::*; use transport::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let f = |i: usize| a[i].parse::<f64>().unwrap();
    let mut plan = Plan::new(Duration::from_secs_f64(f(5)));
    let b = LinkConfig { rate: Some((f(2)*1e6) as u64), delay: Duration::from_secs_f64(f(3)/1e3), queue: QueueConfig::Packets(f(4) as u32 -1), ..Default::default()};
    let t = plan.link("b", b.clone()); let r = plan.link("r", LinkConfig{queue: QueueConfig::Unlimited, ..b});
    let c = TcpConfig::ns2(if a[1]=="s" {Recovery::Sack} else {Recovery::NewReno});
    plan.tcp("f", &[t], &[r], Instant::ZERO, &Arc::new(c));
    let res = Simulation::new(&plan, 1).run(&RunOptions{interval: Some(Duration::from_millis(10))});
    for s in &res.series { if (s.time_s*1000.0).round() as u64 % 50 != 10 {continue}
        let f=&s.flows[0]; println!("{:.4} cwnd {:.4} ssth {:.1} flight {} rx {} srtt {:.2} nrex {} q {}", s.time_s, f.cwnd, f.ssthresh, f.flight, f.delivered_bytes/1210, f.srtt_ms, f.retransmissions, s.links[0].queue); }
}
