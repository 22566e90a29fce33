//! Scripts that run a campaign as an array of jobs on a cluster.

use std::num::NonZeroU32;

use super::Failure;

/// A script for `sbatch`: `jobs` jobs of `program sim words`.
///
/// # Errors
/// A word with a zero byte, which no shell takes.
pub(super) fn slurm(jobs: NonZeroU32, program: &str, mut words: Vec<String>) -> Result<String, Failure> {
    words.splice(0..0, [program.to_owned(), "sim".to_owned()]);
    let command = shlex::try_join(words.iter().map(String::as_str))
        .map_err(|error| Failure::input(format!("this command cannot be written for a shell: {error}")))?;
    Ok(format!(
        "#!/bin/sh
# Give this to sbatch. When all jobs have ended, this prints the means and writes the tables over all runs:
#   {command}
# What a job did not finish is run by it, or by the next job with the same number.
#SBATCH --job-name=sinnet
#SBATCH --array=0-{}
#SBATCH --cpus-per-task=1
exec {command} --threads \"${{SLURM_CPUS_PER_TASK:-1}}\" --shard auto/{jobs}",
        jobs.get() - 1
    ))
}

/// A Job for `kubectl apply`: `jobs` pods of `sinnet sim words`.
pub(super) fn kubernetes(jobs: NonZeroU32, mut words: Vec<String>) -> String {
    words.insert(0, "sim".to_owned());
    words.extend(["--threads", "1", "--shard"].map(str::to_owned));
    words.push(format!("auto/{jobs}"));
    // A list in JSON is one in YAML.
    let words = serde_json::json!(words);
    format!(
        "# IMAGE has this very program at /usr/local/bin/sinnet; CLAIM is a volume that all pods may write (ReadWriteMany), with the
# scenario on it. When all pods have ended, the same command without --shard writes the tables over all runs.
apiVersion: batch/v1
kind: Job
metadata:
  name: sinnet
spec:
  completions: {jobs}
  parallelism: {jobs}
  completionMode: Indexed
  backoffLimitPerIndex: 2
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: sinnet
          image: IMAGE
          command: [/usr/local/bin/sinnet]
          args: {words}
          workingDir: /campaign
          volumeMounts:
            - name: campaign
              mountPath: /campaign
      volumes:
        - name: campaign
          persistentVolumeClaim:
            claimName: CLAIM"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_through_as_they_are() {
        let words = || ["a b.toml", "--set", "flow.*.x=\"$HOME\"", "--out", "it's"].map(str::to_owned).to_vec();
        let jobs = NonZeroU32::new(64).unwrap();
        let script = slurm(jobs, "/opt/sinnet", words()).unwrap();
        let line = script.lines().last().unwrap();
        let read = shlex::split(line).unwrap();
        assert_eq!(read.get(3..8), Some(&words()[..]), "{line}");
        assert!(line.ends_with("--shard auto/64") && script.contains("--array=0-63\n"), "{script}");
        let job = kubernetes(jobs, words());
        let args = job.lines().find_map(|line| line.trim().strip_prefix("args: ")).unwrap();
        let read: Vec<String> = serde_json::from_str(args).unwrap();
        assert_eq!(read.get(1..6), Some(&words()[..]), "{args}");
    }
}
