//! A small campaign: seeds of two hosts, of many, and of a long time.

use chaos::{Shape, draw, run, run_twice};

#[expect(clippy::print_stderr, reason = "which seed failed, and how to see it again")]
fn campaign(seeds: impl IntoIterator<Item = u64>, shape: Shape, options: &str) {
    let mut failed = Vec::new();
    for seed in seeds {
        let plan = draw(seed, shape);
        let outcome = if seed % 16 == 0 { run_twice(&plan) } else { run(&plan) };
        if let Some(finding) = outcome.finding {
            eprintln!("seed {seed}: {finding}\n  cargo chaos{options} --replay {seed} --shrink");
            failed.push(seed);
        }
    }
    assert!(failed.is_empty(), "seeds {failed:?} failed");
}

#[test]
fn two_hosts_keep_every_promise() {
    campaign(0..270, Shape::Two, "");
}

#[test]
fn many_hosts_keep_every_promise() {
    campaign(0..29, Shape::Many, " --hosts 0");
}

/// The seed's day has flapping links, a dead locator, and no more events than a storm of a minute.
#[test]
fn a_virtual_day_keeps_every_promise() {
    campaign([3], Shape::Long, " --long");
}

/// Seeds with attacks alone, in which a queue was full of what the attacker sent, or what he changed was lost: that is done
/// to the network, not to the hosts.
#[test]
fn what_an_attacker_does_to_the_network_is_not_held_against_hosts() {
    campaign([1650, 3004, 4483, 5912], Shape::Two, "");
}

/// A host that closes again and again while nobody answers, and programs that go on sending.
#[test]
fn an_exchange_after_a_close_is_another() {
    campaign([100_628], Shape::Two, "");
}

/// A peer that renews the keys of a dead path again and again, and proves none: all of them go at once.
#[test]
fn new_keys_of_a_path_that_is_given_up_go_with_it() {
    campaign([302_254], Shape::Two, "");
}

/// A NAT forgets a host while its keys are renewed: what it still sends under the old ones shows where it is.
#[test]
fn old_keys_show_where_the_peer_is() {
    campaign([37_132, 43_235], Shape::Two, "");
}

/// A NAT forgets a host that has the new keys of its path, before its peer knows that it has them.
#[test]
fn new_keys_show_where_the_peer_is() {
    campaign([5438], Shape::Many, " --hosts 0");
}

/// News that a silent link swallowed for half a minute, and keys that wait for them.
#[test]
fn keys_do_not_wait_for_what_nobody_acknowledges() {
    campaign([6606], Shape::Many, " --hosts 0");
}

/// A NAT forgets a backup, whose host asks on it every 15 s alone: until then nobody is there to renew its keys.
#[test]
fn keys_are_not_renewed_where_nobody_is() {
    campaign([4488], Shape::Many, " --hosts 0");
}

/// New keys by a base exchange, from a peer behind a NAT: the ways of its paths lead there, those of the configuration nowhere.
#[test]
fn a_base_exchange_for_new_keys_takes_the_ways_of_the_paths() {
    campaign([72_422], Shape::Two, "");
}
