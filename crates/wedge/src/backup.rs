//! Backups: paths that carry data only where no other path works, as one that is paid by the byte. Either host may want
//! that of a path; heartbeats go on, though seldom, so that it is known to work when it is needed.

use crate::peer::PeerState;
use clock::Instant;
use scheduler::PathId;

impl PeerState {
    /// The peer wants a path as a backup, or does no longer. Only between Sinnet hosts: others have one preferred locator
    /// without meaning that.
    pub(crate) fn set_backup(&mut self, now: Instant, id: PathId, backup: bool) {
        if !self.gives_feedback() {
            return;
        }
        if let Some(path) = self.path_mut(id) {
            path.peers_backup = backup;
        }
        self.refresh(now);
    }

    /// Decides which of the backups stand by.
    pub(crate) fn choose_backups(&mut self, now: Instant) {
        let others_work = self.paths.iter().any(|path| path.answers() && !path.is_backup());
        for path in &mut self.paths {
            let standby = others_work && path.is_backup();
            path.heartbeat.set_standby(now, standby);
            if std::mem::replace(&mut path.standby, standby) == standby {
                continue;
            }
            // The coupled windows of the others do not count one that sends nothing.
            self.sender.set_open(path.id, !standby);
        }
    }
}
