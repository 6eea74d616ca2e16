//! The TaskProlog that records every job: one line of shell that Slurm runs as the job's user before each task.

use super::quote::quoted;
use std::ffi::OsStr;
use std::path::Path;

/// Slurm reads the prolog's output until it is closed and ends what is left of its process group: the monitor has a session and no output
/// of its own. One per job and node: the lock ends with its process.
pub fn prolog(flatout: &Path, records: Option<&Path>, interval_s: u32) -> Vec<u8> {
    let mut out = b"#!/bin/sh\n# TaskProlog: flatout samples the GPUs of each job in the background, one monitor per job and node.\n".to_vec();
    out.extend_from_slice(
        b"[ -z \"${SLURM_JOB_GPUS:-}${SLURM_STEP_GPUS:-}${CUDA_VISIBLE_DEVICES:-}\" ] || FLATOUT_HOME=",
    );
    match records {
        Some(folder) => {
            out.extend(quoted(folder.as_os_str()));
            out.extend_from_slice(b"/\"$(id -un)\"");
        }
        None => out.extend_from_slice(b"\"${FLATOUT_HOME:-$HOME/.flatout}\""),
    }
    // The shell in the new session starts the monitor: when the prolog ends, it has left the prolog's process group.
    out.extend_from_slice(b" setsid sh -c 'flock -n \"$0\" \"$@\" </dev/null >/dev/null 2>&1 &' \"/tmp/flatout-job-$SLURM_JOB_ID-$(id -u)\" ");
    out.extend(quoted(OsStr::new(flatout)));
    out.extend_from_slice(
        format!(
            " monitor --plain --interval {interval_s} --name \"${{SLURM_JOB_NAME:-job}}\" ${{SLURM_TASK_PID:+--pid \"$SLURM_TASK_PID\"}}\n"
        )
        .as_bytes(),
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// The prolog in a real shell, with `flock` and `setsid` of the machine and a program that prints its words.
    #[test]
    fn starts_one_monitor_for_jobs_with_gpus() {
        let place = tempfile::tempdir().unwrap();
        let fake = place.path().join("flat out");
        let said = place.path().join("said");
        std::fs::write(
            &fake,
            "#!/bin/sh\nprintf '%s\\n' \"$FLATOUT_HOME\" \"$@\" > \"$SAID\"\n",
        )
        .unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&fake, mode).unwrap();
        let script = place.path().join("prolog.sh");
        std::fs::write(&script, prolog(&fake, Some(place.path()), 10)).unwrap();
        let run = |gpus: Option<&str>| {
            let _ = std::fs::remove_file(&said);
            let mut command = Command::new("sh");
            command
                .arg(&script)
                .env_remove("CUDA_VISIBLE_DEVICES")
                .env("SLURM_JOB_ID", format!("test-{}", std::process::id()))
                .env("SLURM_JOB_NAME", "my job")
                .env("SLURM_TASK_PID", "7")
                .env("SAID", &said);
            if let Some(gpus) = gpus {
                command.env("SLURM_JOB_GPUS", gpus);
            }
            let output = command.output().unwrap();
            assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
        };
        run(None);
        assert!(!said.exists());
        run(Some("0,1"));
        let text = (0..500).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            std::fs::read_to_string(&said)
                .ok()
                .filter(|text| text.ends_with("--pid\n7\n"))
        });
        let text = text.unwrap();
        let words: Vec<&str> = text.lines().collect();
        assert!(words[0].starts_with(place.path().to_str().unwrap()), "{words:?}");
        assert_eq!(
            words[1..],
            [
                "monitor",
                "--plain",
                "--interval",
                "10",
                "--name",
                "my job",
                "--pid",
                "7"
            ]
        );
    }
}
