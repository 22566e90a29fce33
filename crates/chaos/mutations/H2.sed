# The keys of all paths come from one KEYMAT, here of 800 bytes, which nothing renews; without a path nothing has an end.
# file: crates/hip/src/association.rs
# options:
s/self\.renews = renews;/self.renews = false;/
s/config\.keymat_limit\.min(self\.session\.keymat\.len())/config.keymat_limit.min(800)/
s/^        if renews {$/        if renews \&\& self.renews {/
s/self\.rekey_at = self\.rekey_at\.min(now);/let _ = now;/
s/self\.pathless\.get_or_insert((now, now + config\.pathless));/let _ = (now, config);/
