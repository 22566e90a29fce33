//! Those who come to one of our listening sockets: bounded in number, in bytes and in time. What they ask is another file's
//! business ([`crate::control`], [`crate::metrics`], [`crate::names`]).
//!
//! Each visitor holds one question and one answer. Nothing is read while an answer waits to be written, whoever takes longer
//! than [`PATIENCE`] is gone, and whoever comes while many are there takes the place of the oldest of his class: the trusted
//! have places of their own, so no crowd keeps root from ending the daemon.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};

use clock::{Duration, Instant};
use rustix::event::PollFlags;

/// How long a question and its answer may take together.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// How long nobody is let in after the kernel had no file descriptor or memory for another connection. The listening socket
/// stays readable, so without a pause the loop would spin (accept(2), EMFILE).
const PAUSE: Duration = Duration::from_millis(200);
/// Connections accepted before the packets have their turn again.
const ACCEPTED_AT_ONCE: usize = 64;
/// Bytes read at once.
const CHUNK: usize = 1024;

/// A listening socket.
pub(crate) trait Listener: AsFd {
    type Stream: Read + Write + AsFd;

    /// The next connection, which does not block, or why there is none.
    fn accept_next(&self) -> io::Result<Self::Stream>;
}

impl Listener for TcpListener {
    type Stream = TcpStream;

    fn accept_next(&self) -> io::Result<TcpStream> {
        let (stream, _) = self.accept()?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    }
}

impl Listener for UnixListener {
    type Stream = UnixStream;

    fn accept_next(&self) -> io::Result<UnixStream> {
        let (stream, _) = self.accept()?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    }
}

/// What to think of somebody who has connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Not to be let in.
    Unwanted,
    /// One of many.
    Ordinary,
    /// One with a place of its own.
    Trusted,
}

/// How many may come, and how much they may say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Ordinary visitors at once.
    pub(crate) ordinary: usize,
    /// Trusted visitors at once, beside the others.
    pub(crate) trusted: usize,
    /// Bytes of a question.
    pub(crate) question: usize,
    /// Questions answered before the packets have their turn again.
    pub(crate) answers: usize,
}

/// What becomes of a question.
#[derive(Debug)]
pub(crate) enum Step {
    /// It is not whole yet.
    More,
    /// The answer; then the next question.
    Answer(Vec<u8>),
    /// The answer; then the visitor leaves.
    Last(Vec<u8>),
    /// The answer; the visitor stays and waits for our end.
    Stay(Vec<u8>),
    /// The answer is not known yet: the same is asked again at the next turn.
    Later,
    /// No answer.
    Leave,
}

/// What happened at a listening socket, in numbers of connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// The kernel had no room for another one.
    pub(crate) not_accepted: u64,
    /// They made room for others.
    pub(crate) evicted: u64,
    /// They took too long.
    pub(crate) expired: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Asking,
    /// Its question is, and the answer is not known yet.
    Pending,
    /// An answer is being written, then the visitor does this.
    Answering(After),
    Waiting,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    Asks,
    Leaves,
    Waits,
}

#[derive(Debug)]
struct Visitor<S> {
    stream: S,
    class: Class,
    question: Vec<u8>,
    answer: Vec<u8>,
    written: usize,
    deadline: Instant,
    state: State,
    /// There is more in `question` than was answered, and no event will tell.
    unread: bool,
}

/// A listening socket and who has come to it.
#[derive(Debug)]
pub(crate) struct Visitors<L: Listener> {
    listener: L,
    limits: Limits,
    /// In the order of their arrival.
    visitors: Vec<Visitor<L::Stream>>,
    /// Nobody is let in before.
    paused: Option<Instant>,
    /// Whose turn it is to be answered first.
    first: usize,
    tally: Tally,
}

impl<L: Listener> Visitors<L> {
    /// Nobody has come to `listener` yet, which does not block.
    pub(crate) fn new(listener: L, limits: Limits) -> Self {
        Self { listener, limits, visitors: Vec::new(), paused: None, first: 0, tally: Tally::default() }
    }

    /// The listening socket.
    #[cfg(test)]
    pub(crate) fn listener(&self) -> &L {
        &self.listener
    }

    /// What has happened so far.
    pub(crate) fn tally(&self) -> Tally {
        self.tally
    }

    /// How many are there.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.visitors.len()
    }

    /// What to poll for.
    pub(crate) fn interests(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        let listener = self.paused.is_none().then(|| (self.listener.as_fd(), PollFlags::IN));
        let visitors = self.visitors.iter().map(|visitor| {
            let flags = match visitor.state {
                // A socket with room is ready at once.
                State::Asking if visitor.unread => PollFlags::OUT,
                // Only that it has gone.
                State::Pending => PollFlags::empty(),
                State::Asking => PollFlags::IN,
                State::Answering(_) => PollFlags::OUT,
                // Only that it has gone.
                State::Waiting => PollFlags::empty(),
            };
            (visitor.stream.as_fd(), flags)
        });
        listener.into_iter().chain(visitors)
    }

    /// When [`Visitors::turn`] wants to be called at the latest.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.visitors.iter().map(|visitor| visitor.deadline).chain(self.paused).min()
    }

    /// Accepts, reads and writes as far as that goes without waiting. `judge` says what to think of a newcomer; `serve` is
    /// given what a visitor has said so far, and takes what it answers out of it.
    pub(crate) fn turn(
        &mut self,
        now: Instant,
        mut judge: impl FnMut(&L::Stream) -> Class,
        mut serve: impl FnMut(&L::Stream, &mut Vec<u8>) -> Step,
    ) {
        let before = self.visitors.len();
        self.visitors.retain(|visitor| visitor.deadline > now);
        self.tally.expired += (before - self.visitors.len()) as u64;
        self.paused = self.paused.filter(|until| *until > now);
        self.accept(now, &mut judge);
        let (mut budget, limit) = (self.limits.answers, self.limits.question);
        let count = self.visitors.len();
        let mut gone = Vec::new();
        for index in (0..count).map(|step| (self.first + step) % count) {
            let Some(visitor) = self.visitors.get_mut(index) else { continue };
            if !visitor.turn(now, limit, &mut budget, &mut serve) {
                gone.push(index);
            }
        }
        // Who did not get his turn today is the first tomorrow.
        self.first = if count == 0 { 0 } else { (self.first + 1) % count };
        let mut index = 0;
        self.visitors.retain(|_| {
            index += 1;
            !gone.contains(&(index - 1))
        });
    }

    fn accept(&mut self, now: Instant, judge: &mut impl FnMut(&L::Stream) -> Class) {
        for _ in 0..ACCEPTED_AT_ONCE {
            if self.paused.is_some() {
                return;
            }
            match self.listener.accept_next() {
                Ok(stream) => {
                    let class = judge(&stream);
                    if class != Class::Unwanted {
                        self.let_in(now, stream, class);
                    }
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return,
                    // The other end has gone already.
                    io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted => {}
                    _ => {
                        self.tally.not_accepted += 1;
                        // A place of an ordinary visitor may be all that is missing.
                        if !self.evict(Class::Ordinary) {
                            self.paused = Some(now + PAUSE);
                        }
                    }
                },
            }
        }
    }

    fn let_in(&mut self, now: Instant, stream: L::Stream, class: Class) {
        let most = if class == Class::Trusted { self.limits.trusted } else { self.limits.ordinary };
        if self.visitors.iter().filter(|visitor| visitor.class == class).count() >= most {
            self.evict(class);
        }
        self.visitors.push(Visitor {
            stream,
            class,
            question: Vec::new(),
            answer: Vec::new(),
            written: 0,
            deadline: now + PATIENCE,
            state: State::Asking,
            unread: false,
        });
    }

    /// Lets the oldest visitor of a class go; false where there is none.
    fn evict(&mut self, class: Class) -> bool {
        let oldest = self.visitors.iter().position(|visitor| visitor.class == class);
        if let Some(index) = oldest {
            self.visitors.remove(index);
            self.tally.evicted += 1;
        }
        oldest.is_some()
    }
}

impl<S: Read + Write> Visitor<S> {
    /// False once it is to go.
    fn turn(
        &mut self,
        now: Instant,
        limit: usize,
        budget: &mut usize,
        serve: &mut impl FnMut(&S, &mut Vec<u8>) -> Step,
    ) -> bool {
        loop {
            match self.state {
                State::Waiting => return matches!(self.read(), Ok(Some(0))),
                State::Answering(after) => match self.write() {
                    Ok(true) => match after {
                        After::Leaves => return false,
                        After::Waits => self.state = State::Waiting,
                        After::Asks => {
                            (self.state, self.deadline) = (State::Asking, now + PATIENCE);
                            self.unread = !self.question.is_empty();
                            return true;
                        }
                    },
                    Ok(false) => return true,
                    Err(_) => return false,
                },
                State::Asking if *budget == 0 => return true,
                State::Asking | State::Pending => {
                    let known = std::mem::take(&mut self.unread) || self.state == State::Pending;
                    self.state = State::Asking;
                    if !known {
                        match self.read() {
                            Ok(Some(0)) => return true,
                            Ok(Some(_)) => {}
                            Ok(None) | Err(_) => return false,
                        }
                    }
                    let (answer, after) = match serve(&self.stream, &mut self.question) {
                        Step::More if self.question.len() < limit => continue,
                        Step::More | Step::Leave => return false,
                        Step::Later => {
                            self.state = State::Pending;
                            return true;
                        }
                        Step::Answer(answer) => (answer, After::Asks),
                        Step::Last(answer) => (answer, After::Leaves),
                        Step::Stay(answer) => (answer, After::Waits),
                    };
                    *budget = budget.saturating_sub(1);
                    (self.answer, self.written, self.state) = (answer, 0, State::Answering(after));
                }
            }
        }
    }

    /// How many bytes have come now, or nothing at the end.
    fn read(&mut self) -> io::Result<Option<usize>> {
        let mut chunk = [0; CHUNK];
        loop {
            match self.stream.read(&mut chunk) {
                Ok(0) => return Ok(None),
                Ok(length) => {
                    self.question.extend_from_slice(chunk.get(..length).unwrap_or_default());
                    return Ok(Some(length));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Some(0)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes what the socket has room for; true once all is written.
    fn write(&mut self) -> io::Result<bool> {
        while let Some(rest) = self.answer.get(self.written..).filter(|rest| !rest.is_empty()) {
            match self.stream.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(length) => self.written += length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.answer = Vec::new();
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::io::{BufRead as _, BufReader};

    const LIMITS: Limits = Limits { ordinary: 12, trusted: 4, question: 1024, answers: 1 };

    /// A listening socket whose kernel may be out of file descriptors.
    struct Moody {
        listener: UnixListener,
        refuses: Cell<bool>,
    }

    impl AsFd for Moody {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.listener.as_fd()
        }
    }

    impl Listener for Moody {
        type Stream = UnixStream;

        fn accept_next(&self) -> io::Result<UnixStream> {
            const EMFILE: i32 = 24;
            if self.refuses.get() { Err(io::Error::from_raw_os_error(EMFILE)) } else { self.listener.accept_next() }
        }
    }

    /// A place to come to, and its path.
    fn place(limits: Limits) -> (tempfile::TempDir, Visitors<Moody>, impl Fn() -> UnixStream) {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("socket");
        let listener = UnixListener::bind(&path).expect("binds");
        listener.set_nonblocking(true).expect("a socket");
        let come = move || UnixStream::connect(&path).expect("connects");
        (directory, Visitors::new(Moody { listener, refuses: Cell::new(false) }, limits), come)
    }

    fn at(milliseconds: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(milliseconds)
    }

    /// Answers each line with so many bytes.
    fn long(question: &mut Vec<u8>, bytes: usize) -> Step {
        let Some(end) = question.iter().position(|byte| *byte == b'\n') else { return Step::More };
        question.drain(..=end);
        Step::Answer([vec![b'x'; bytes], vec![b'\n']].concat())
    }

    /// How many bytes of memory this process uses, as the kernel counts.
    fn resident() -> usize {
        let text = std::fs::read_to_string("/proc/self/statm").expect("proc");
        text.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).expect("a number") * 4096
    }

    #[test]
    fn who_asks_and_does_not_read_is_not_read_either() {
        let (_directory, mut visitors, come) = place(LIMITS);
        let mut greedy = come();
        greedy.set_nonblocking(true).expect("a socket");
        let (before, mut answered) = (resident(), 0);
        for turn in 0..300 {
            // As many questions as the kernel takes.
            let _ = greedy.write("a question\n".repeat(400).as_bytes());
            visitors.turn(
                at(turn),
                |_| Class::Ordinary,
                |_, question| {
                    answered += 1;
                    long(question, 1 << 20)
                },
            );
        }
        assert!(answered <= 2, "{answered} answers of a Mbyte for nobody");
        assert!(resident().saturating_sub(before) < 64 << 20, "{} bytes more", resident() - before);
        // While the answer waits, only room for it is of interest.
        assert_eq!(visitors.interests().map(|(_, flags)| flags).collect::<Vec<_>>(), [PollFlags::IN, PollFlags::OUT]);
        visitors.turn(at(6000), |_| Class::Ordinary, |_, question| long(question, 1));
        assert_eq!((visitors.len(), visitors.tally().expired), (0, 1), "and then it is gone");
    }

    #[test]
    fn questions_in_a_row_are_answered_in_their_order_one_each_turn() {
        let (_directory, mut visitors, come) = place(Limits { answers: 8, ..LIMITS });
        let mut hasty = come();
        hasty.write_all(b"one\ntwo\nthree\n").expect("writes");
        let mut answered = Vec::new();
        for turn in 0..3 {
            let flags = visitors.interests().last().map(|(_, flags)| flags);
            // What is known already needs no news, only room.
            assert_eq!(flags, Some(if turn == 0 { PollFlags::IN } else { PollFlags::OUT }));
            visitors.turn(
                at(0),
                |_| Class::Ordinary,
                |_, question| {
                    answered.push(question.len());
                    long(question, 1)
                },
            );
        }
        assert_eq!(answered, [14, 10, 6], "what is left each time");
        assert_eq!(visitors.interests().last().map(|(_, flags)| flags), Some(PollFlags::IN));
    }

    #[test]
    fn a_crowd_has_the_places_of_its_class_only_and_the_newest_win() {
        let (_directory, mut visitors, come) = place(LIMITS);
        let mut seen = 0;
        let mut serve = |visitors: &mut Visitors<Moody>, class| {
            visitors.turn(at(seen), |_| class, |_, question| long(question, 1));
            seen += 1;
        };
        let mut root = come();
        serve(&mut visitors, Class::Trusted);
        let mut crowd: Vec<_> = (0..300)
            .map(|_| {
                let one = come();
                serve(&mut visitors, Class::Ordinary);
                one
            })
            .collect();
        assert_eq!(visitors.len(), LIMITS.ordinary + 1);
        assert_eq!(visitors.tally().evicted, 300 - LIMITS.ordinary as u64);
        let last = crowd.pop();
        for stream in [Some(&mut root), last.as_ref().map(|_| &mut crowd[0])].into_iter().flatten() {
            let _ = stream.write_all(b"a question\n");
        }
        let mut last = last.expect("there");
        last.write_all(b"a question\n").expect("writes");
        for _ in 0..3 {
            serve(&mut visitors, Class::Ordinary);
        }
        let answer = |stream: UnixStream| {
            stream.set_read_timeout(Some(std::time::Duration::from_secs(5))).expect("a time");
            let mut line = String::new();
            BufReader::new(stream).read_line(&mut line).map(|_| line)
        };
        assert_eq!(answer(root).expect("an answer"), "x\n");
        assert_eq!(answer(last).expect("an answer"), "x\n");
        assert!(!answer(crowd.swap_remove(0)).is_ok_and(|line| line == "x\n"), "the first had to go");
    }

    #[test]
    fn who_speaks_byte_by_byte_has_no_more_time_than_others() {
        let (_directory, mut visitors, come) = place(LIMITS);
        let mut slow = come();
        for second in 0..5 {
            visitors.turn(at(second * 1000), |_| Class::Ordinary, |_, question| long(question, 1));
            assert_eq!((visitors.len(), visitors.poll_timeout()), (1, Some(at(5000))));
            slow.write_all(b"x").expect("writes");
        }
        visitors.turn(at(5000), |_| Class::Ordinary, |_, question| long(question, 1));
        assert_eq!((visitors.len(), visitors.poll_timeout()), (0, None));
        assert_eq!(visitors.tally(), Tally { expired: 1, ..Tally::default() });
    }

    #[test]
    fn who_never_ends_a_question_leaves() {
        let (_directory, mut visitors, come) = place(LIMITS);
        let mut talker = come();
        talker.write_all(&[b'x'; 5000]).expect("writes");
        let mut longest = 0;
        visitors.turn(
            at(0),
            |_| Class::Ordinary,
            |_, question| {
                longest = longest.max(question.len());
                long(question, 1)
            },
        );
        assert_eq!(visitors.len(), 0);
        assert!(longest <= LIMITS.question + CHUNK, "{longest}");
    }

    #[test]
    fn without_file_descriptors_the_listener_rests_and_then_goes_on() {
        let (_directory, mut visitors, come) = place(LIMITS);
        visitors.listener().refuses.set(true);
        let _waits = come();
        visitors.turn(at(0), |_| Class::Ordinary, |_, question| long(question, 1));
        // The listening socket is readable, so whoever polls for it would spin.
        assert_eq!((visitors.interests().count(), visitors.poll_timeout()), (0, Some(at(200))));
        assert_eq!(visitors.tally().not_accepted, 1);
        visitors.turn(at(100), |_| Class::Ordinary, |_, question| long(question, 1));
        assert_eq!((visitors.interests().count(), visitors.tally().not_accepted), (0, 1));
        visitors.listener().refuses.set(false);
        visitors.turn(at(200), |_| Class::Ordinary, |_, question| long(question, 1));
        assert_eq!((visitors.len(), visitors.interests().count()), (1, 2));
        // Where ordinary visitors hold descriptors, the oldest gives his up first.
        visitors.listener().refuses.set(true);
        visitors.turn(at(300), |_| Class::Ordinary, |_, question| long(question, 1));
        assert_eq!((visitors.len(), visitors.tally().evicted, visitors.tally().not_accepted), (0, 1, 3));
        assert_eq!(visitors.poll_timeout(), Some(at(500)));
    }
}
