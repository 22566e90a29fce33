//! Who sends, for policies about users and cgroups: only the kernel knows the socket of a packet, and it says nothing of it in a
//! TUN device. So the packet filter writes it into the packet, in the place of the DSCP, which is not for peers anyway.
//!
//! The filter is put up with privileges that are given up then. Whom it tells apart is settled by that.

use std::path::{Path, PathBuf};

use nix::unistd::User;
use text::Diagnostic;
use text::reader::At;

use crate::config::PolicyConfig;

/// The marks that there are: what fits into a DSCP (RFC 2474 §3), without 0, which says that nobody is known.
const MARKS: usize = 63;

/// A user, by name and number.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    /// As policies call it, which may be its number.
    name: String,
    number: u32,
}

/// A cgroup of the second version.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Cgroup {
    /// Below the root, without a slash in front or at the end.
    path: String,
    /// Its number, which is that of its directory.
    id: u64,
}

/// What a cgroup is called for the kernel: so many levels below the root an ancestor of a socket's has this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ancestor {
    pub(crate) level: u32,
    pub(crate) id: u64,
}

/// Packets that the filter marks alike; of several that fit the first counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marked {
    /// Whose sockets they come from; `None` for any that are somebody's.
    pub(crate) user: Option<u32>,
    pub(crate) cgroup: Option<Ancestor>,
    /// From 1 to [`MARKS`].
    pub(crate) mark: u8,
}

/// The users and cgroups that policies are about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Senders {
    users: Vec<Known>,
    /// What is inside others comes before them.
    cgroups: Vec<Cgroup>,
}

impl Senders {
    /// Those of these policies.
    ///
    /// # Errors
    /// Where one does not exist, or there are too many.
    pub(crate) fn find(policies: &[PolicyConfig]) -> Result<Self, Diagnostic> {
        let mut senders = Self::default();
        for policy in policies {
            if let Some(user) = &policy.user
                && senders.user(&user.value).is_none()
            {
                senders.users.push(Known { name: user.value.clone(), number: user_number(user)? });
            }
            if let Some(cgroup) = &policy.cgroup
                && senders.cgroup(&cgroup.value).is_none()
            {
                senders.cgroups.push(Cgroup { path: cgroup.value.clone(), id: cgroup_id(&hierarchy(), cgroup)? });
            }
            let kinds = senders.kinds();
            if let Some(at) = policy.user.as_ref().or(policy.cgroup.as_ref()).filter(|_| kinds > MARKS) {
                let message =
                    format!("with this there are {kinds} kinds of senders: users and others, in cgroups and elsewhere");
                let help = format!("{MARKS} can be told apart: name fewer users or fewer cgroups in all [[policy]]");
                return Err(at.place.error(message, Some(help)));
            }
        }
        senders.cgroups.sort_by_key(|cgroup| std::cmp::Reverse(cgroup.level()));
        Ok(senders)
    }

    fn kinds(&self) -> usize {
        (self.users.len() + 1) * (self.cgroups.len() + 1)
    }

    /// Where a user is among them.
    fn user(&self, name: &str) -> Option<usize> {
        let number = name.parse().ok();
        self.users.iter().position(|user| user.name == name || Some(user.number) == number)
    }

    fn cgroup(&self, path: &str) -> Option<usize> {
        self.cgroups.iter().position(|cgroup| cgroup.path == path)
    }

    /// The mark of what such a user sends out of such a cgroup; the last of each are all others.
    fn mark(&self, user: usize, cgroup: usize) -> u8 {
        // There are at most MARKS.
        u8::try_from(1 + cgroup * (self.users.len() + 1) + user).unwrap_or(0)
    }

    /// How the filter has to mark.
    pub(crate) fn marked(&self) -> Vec<Marked> {
        let (users, cgroups) = (self.users.len(), self.cgroups.len());
        if users + cgroups == 0 {
            return Vec::new();
        }
        let all = (0..=cgroups).flat_map(|cgroup| (0..=users).map(move |user| (user, cgroup)));
        let marked = |(user, cgroup): (usize, usize)| Marked {
            user: self.users.get(user).map(|user| user.number),
            cgroup: self.cgroups.get(cgroup).map(|cgroup| Ancestor { level: cgroup.level(), id: cgroup.id }),
            mark: self.mark(user, cgroup),
        };
        all.map(marked).collect()
    }

    /// With what packets are marked that a policy is about; `None` for any.
    ///
    /// # Errors
    /// Where the filter does not tell them apart, because they were in no policy when it was put up.
    pub(crate) fn marks(&self, policy: &PolicyConfig) -> Result<Option<Vec<u8>>, Diagnostic> {
        let unknown = |at: &At<String>, what: &str| {
            let message = format!("the {what} {} was in no policy when Sinnet started", at.value);
            at.place.error(message, Some("the packet filter tells it apart after a restart".to_owned()))
        };
        let user = match &policy.user {
            Some(at) => Some(self.user(&at.value).ok_or_else(|| unknown(at, "user"))?),
            None => None,
        };
        let cgroup = match &policy.cgroup {
            Some(at) => Some(self.cgroup(&at.value).ok_or_else(|| unknown(at, "cgroup"))?),
            None => None,
        };
        if user.is_none() && cgroup.is_none() {
            return Ok(None);
        }
        let outer = cgroup.and_then(|cgroup| self.cgroups.get(cgroup));
        let fits = |at: usize| outer.is_none_or(|outer| self.cgroups.get(at).is_some_and(|inner| inner.is_in(outer)));
        let users = || (0..=self.users.len()).filter(|at| user.is_none_or(|user| user == *at));
        let cgroups = (0..=self.cgroups.len()).filter(|at| fits(*at));
        Ok(Some(cgroups.flat_map(|cgroup| users().map(move |user| self.mark(user, cgroup))).collect()))
    }
}

impl Cgroup {
    fn level(&self) -> u32 {
        // A path has at most PATH_MAX bytes.
        u32::try_from(self.path.split('/').count()).unwrap_or(u32::MAX)
    }

    fn is_in(&self, outer: &Self) -> bool {
        let rest = self.path.strip_prefix(outer.path.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

fn user_number(user: &At<String>) -> Result<u32, Diagnostic> {
    if let Ok(number) = user.value.parse() {
        return Ok(number);
    }
    match User::from_name(&user.value) {
        Ok(Some(found)) => Ok(found.uid.as_raw()),
        Ok(None) => {
            let help = "`getent passwd` lists those that there are; a number need not be among them".to_owned();
            Err(user.place.error(format!("there is no user {}", user.value), Some(help)))
        }
        Err(error) => Err(user.place.error(format!("looking for the user {}: {error}", user.value), None)),
    }
}

/// Where the second version of cgroups is: not at its usual place where the first one is there, too.
fn hierarchy() -> PathBuf {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let at = mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (at, kind) = (words.next()?, words.next()?);
        (kind == "cgroup2").then_some(at)
    });
    PathBuf::from(at.unwrap_or("/sys/fs/cgroup"))
}

fn cgroup_id(hierarchy: &Path, cgroup: &At<String>) -> Result<u64, Diagnostic> {
    use std::os::unix::fs::MetadataExt as _;
    let directory = hierarchy.join(&cgroup.value);
    // cgroups(7): what has processes is a directory with such a file.
    match std::fs::metadata(&directory)
        .and_then(|found| Ok((found, std::fs::metadata(directory.join("cgroup.procs"))?)))
    {
        Ok((found, _)) => Ok(found.ino()),
        Err(error) => {
            let message = format!("there is no cgroup {}: {}: {error}", cgroup.value, directory.display());
            let help = "`systemd-cgls` lists those that there are; one that comes and goes, as that of a service, does so in a \
                        slice that stays";
            Err(cgroup.place.error(message, Some(help.to_owned())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policies(text: &str) -> Vec<PolicyConfig> {
        let text = format!("identity = \"a.pem\"\n{text}");
        crate::config::parse(&text, "a.toml").expect("right").policies
    }

    fn of(keys: &str) -> PolicyConfig {
        policies(&format!("[[policy]]\npriority = \"bulk\"\n{keys}\n")).remove(0)
    }

    fn senders(users: &[u32], cgroups: &[&str]) -> Senders {
        let known = |number: &u32| Known { name: format!("u{number}"), number: *number };
        let cgroup = |(id, path): (u64, &&str)| Cgroup { path: (*path).to_owned(), id };
        Senders { users: users.iter().map(known).collect(), cgroups: (70..).zip(cgroups).map(cgroup).collect() }
    }

    /// What the filter writes, by the rules of nftables: the first rule that fits.
    fn written(senders: &Senders, user: Option<u32>, inside: &[u64]) -> u8 {
        let fits = |marked: &&Marked| {
            user.is_some()
                && marked.user.is_none_or(|wanted| Some(wanted) == user)
                && marked.cgroup.is_none_or(|cgroup| inside.contains(&cgroup.id))
        };
        senders.marked().iter().find(fits).map_or(0, |marked| marked.mark)
    }

    #[test]
    fn a_policy_has_the_marks_of_those_that_it_is_about() {
        let senders = senders(&[1000, 7], &["a/b", "a", "c"]);
        let (in_ab, in_a, in_c, elsewhere) = (&[70, 71][..], &[71][..], &[72][..], &[][..]);
        for (keys, of_user, of_cgroup) in [
            ("user = \"u1000\"", Some(1000), None),
            ("user = \"7\"", Some(7), None),
            ("cgroup = \"a\"", None, Some(71)),
            ("cgroup = \"a/b\"", None, Some(70)),
            ("user = \"u7\"\ncgroup = \"/a/\"", Some(7), Some(71)),
            ("user = \"u7\"\ncgroup = \"c\"", Some(7), Some(72)),
        ] {
            let marks = senders.marks(&of(keys)).expect("known").expect("some");
            for user in [None, Some(1000), Some(7), Some(8), Some(0)] {
                for inside in [in_ab, in_a, in_c, elsewhere] {
                    let mark = written(&senders, user, inside);
                    assert!(usize::from(mark) <= MARKS);
                    let is_user = user.is_some() && (of_user.is_none() || of_user == user);
                    let expected = is_user && of_cgroup.is_none_or(|cgroup| inside.contains(&cgroup));
                    assert_eq!(marks.contains(&mark), expected, "{keys} {user:?} {inside:?} {mark}");
                }
            }
        }
        assert_eq!(senders.marks(&of("ports = [\"5\"]")).expect("all"), None);
        assert!(Senders::default().marked().is_empty());
    }

    #[test]
    fn who_is_not_there_is_told_at_the_place() {
        for (keys, message) in [
            ("user = \"no-such-user\"", "there is no user no-such-user"),
            ("cgroup = \"no/such\"", "there is no cgroup no/such"),
        ] {
            let error = Senders::find(&[of(keys)]).expect_err("is not there");
            assert!(error.message().contains(message) && error.help().is_some(), "{error}");
            assert!(error.to_string().contains("a.toml:4"), "{error}");
            let error = senders(&[1], &["a"]).marks(&of(keys)).expect_err("was not there");
            assert!(error.help().is_some_and(|help| help.contains("restart")), "{error}");
        }
        assert_eq!(Senders::find(&[of("user = \"root\"")]).expect("is there").marked()[0].user, Some(0));
        assert_eq!(
            Senders::find(&[of("user = \"4000000000\"")]).expect("a number").marked()[0].user,
            Some(4_000_000_000)
        );
        let many: String = (0..62).map(|user| format!("[[policy]]\nuser = \"{user}\"\nthrough = false\n")).collect();
        let found = Senders::find(&policies(&many)).expect("as many as there can be");
        assert_eq!(found.marked().iter().map(|marked| usize::from(marked.mark)).max(), Some(MARKS));
        let more = format!("{many}[[policy]]\nuser = \"100\"\nthrough = false\n");
        assert!(Senders::find(&policies(&more)).is_err_and(|error| error.message().contains("64 kinds of senders")));
    }
}
